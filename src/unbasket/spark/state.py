"""What Spark's state store keeps about a user: the user's orders, as bytes, and nothing else.

Everything derived from them is folded anew when they change. So the state holds only what remains, with no trace of its
past: equal histories are equal bytes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import Id, in_order
from unbasket.engine.state import EngineState
from unbasket.errors import SparkError

_VERSION = 2


class _Basket(NamedTuple):
    """A basket, with the places of its items in the state's list."""

    basket: Id
    time: int | None
    opens: bool
    items: list[int]


class _State(NamedTuple):
    """The layout, in MessagePack. Items are in the order of their ids, both the user's and each basket's."""

    version: int
    user: Id
    items: list[Id]
    baskets: list[_Basket]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


def encode(memory: EngineState, user: Id) -> bytes:
    """The state of a user."""
    records, names, codes = memory.records(user), memory.items.names, memory.items.codes
    items = in_order([names[code] for code in set().union(*(record.items for record in records))])
    place = {codes[item]: number for number, item in enumerate(items)}
    baskets = [
        (record.basket, record.time, record.opens, sorted([place[code] for code in record.items])) for record in records
    ]
    return _encoder.encode((_VERSION, user, items, baskets))


def decode(states: Sequence[bytes], further: Iterable[Id] = ()) -> BasketColumns:
    """The orders in these states, one user each. Items in `further` get codes as well."""
    held = [_decoded(state) for state in states]
    orders = BasketColumns.of(
        (state.user, [(b.basket, b.time, [state.items[place] for place in b.items], b.opens) for b in state.baskets])
        for state in held
    )
    return orders._replace(items=list(dict.fromkeys([*orders.items, *further])))


def _decoded(state: bytes) -> _State:
    if state[1] != _VERSION:  # the byte after that of a list of four; a small number is one byte
        raise SparkError(
            "the checkpoint was written by another version of unbasket. Export its users with that version's "
            "`unbasket spark to-db`, and start a new checkpoint"
        )
    return _decoder.decode(state)
