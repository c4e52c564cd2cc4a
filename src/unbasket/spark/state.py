"""What Spark's state store keeps of a user: his orders, as bytes, and nothing else.

Everything derived from them is folded anew when they change, so the state is what remains and has no past.
"""

from typing import NamedTuple

import msgspec
import numpy as np

from unbasket.ids import Id
from unbasket.orders import Orders

_VERSION = 1


class _Fields(NamedTuple):
    """The layout; numbers are little-endian, in as few bytes as their range allows."""

    version: int
    user: Id
    items: list[Id]
    names: list[Id]
    times: bytes
    sizes: bytes
    opens: bytes
    purchases: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Fields)


def encode(orders: Orders) -> bytes:
    """The orders of one user."""
    return _encoder.encode(
        _Fields(
            version=_VERSION,
            user=orders.users[0],
            items=orders.items,
            names=[orders.names[place] for place in orders.baskets.tolist()],
            times=orders.times.astype("<i8").tobytes(),
            sizes=orders.sizes.astype("<u2").tobytes(),
            opens=orders.opens.astype("u1").tobytes(),
            purchases=orders.purchases.astype("<u4").tobytes(),
        )
    )


def decode(state: bytes) -> Orders:
    """The orders that were encoded; arrays are copies, since kernels are compiled for writable ones."""
    fields = _decoder.decode(state)
    count = len(fields.names)
    return Orders(
        users=[fields.user],
        items=fields.items,
        names=fields.names,
        owners=np.zeros(count, np.uint32),
        baskets=np.arange(count, dtype=np.uint32),
        times=np.frombuffer(fields.times, "<i8").astype(np.int64),
        sizes=np.frombuffer(fields.sizes, "<u2").astype(np.int64),
        opens=np.frombuffer(fields.opens, "u1").astype(np.int64),
        rows=np.zeros(count, np.int64),
        purchases=np.frombuffer(fields.purchases, "<u4").astype(np.uint32),
    )
