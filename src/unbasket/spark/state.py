"""What Spark's state store keeps of a user: his orders, as bytes, and nothing else.

Everything derived from them is folded anew when they change, so the state is what remains and has no past: equal
histories are equal bytes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from unbasket.ids import Id, in_order
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


def encode(orders: Orders) -> Iterator[bytes]:
    """The state of each user. Items are in the order of their ids, of a user and of a basket."""
    items = in_order(list(orders.items))
    place = {item: number for number, item in enumerate(items)}
    purchases = np.array([place[item] for item in orders.items], np.int64)[orders.purchases]
    purchases = purchases[np.lexsort((purchases, np.repeat(np.arange(len(orders.sizes)), orders.sizes)))]
    basket_ends, item_ends = orders.ends_by_user()
    first = begin = 0
    for user, last, end in zip(orders.users, basket_ends.tolist(), item_ends.tolist(), strict=True):
        codes, own = np.unique(purchases[begin:end], return_inverse=True)
        yield _encoder.encode(
            _Fields(
                version=_VERSION,
                user=user,
                items=[items[code] for code in codes.tolist()],
                names=[orders.names[name] for name in orders.baskets[first:last].tolist()],
                times=orders.times[first:last].astype("<i8").tobytes(),
                sizes=orders.sizes[first:last].astype("<u2").tobytes(),
                opens=orders.opens[first:last].astype("u1").tobytes(),
                purchases=own.astype("<u4").tobytes(),
            )
        )
        first, begin = last, end


def decode(states: Sequence[bytes]) -> Orders:
    """The orders of the users whose states these are."""
    held = [_decoder.decode(state) for state in states]
    items: dict[Id, int] = {}
    purchases = [np.zeros(0, np.uint32)]
    for fields in held:
        codes = np.array([items.setdefault(item, len(items)) for item in fields.items], np.uint32)
        purchases.append(codes[np.frombuffer(fields.purchases, "<u4")])
    names = [name for fields in held for name in fields.names]
    return Orders(
        users=[fields.user for fields in held],
        items=[*items],
        names=names,
        owners=np.repeat(np.arange(len(held), dtype=np.uint32), [len(fields.names) for fields in held]),
        baskets=np.arange(len(names), dtype=np.uint32),
        times=_numbers("<i8", [fields.times for fields in held]),
        sizes=_numbers("<u2", [fields.sizes for fields in held]),
        opens=_numbers("u1", [fields.opens for fields in held]),
        rows=np.zeros(len(names), np.int64),
        purchases=np.concatenate(purchases),
    )


def _numbers(kind: str, parts: list[bytes]) -> Any:
    """Numbers as kernels want them: writable, and of 64 bits."""
    return np.frombuffer(b"".join(parts), kind).astype(np.int64)
