"""The state of a user in Spark's state store: the user's baskets as bytes.

Vectors are folded again when baskets change. The state holds no trace of its past: equal histories are equal bytes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import Id, in_order
from unbasket.engine.histories import HistoryState
from unbasket.errors import SparkError

_VERSION = 2


class _Basket(NamedTuple):
    """A basket, with the positions of its items in the state's list."""

    basket: Id
    time: int | None
    opens: bool
    items: list[int]


class _State(NamedTuple):
    """The layout, in MessagePack. Items of the user and of each basket are in the order of their ids."""

    version: int
    user: Id
    items: list[Id]
    baskets: list[_Basket]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_State)


def encode(histories: HistoryState, user: Id) -> bytes:
    """Return the state of a user."""
    records, names, codes = histories.records(user), histories.items.names, histories.items.codes
    items = in_order([names[code] for code in set().union(*(record.items for record in records))])
    positions = {codes[item]: position for position, item in enumerate(items)}
    baskets = [
        (record.basket, record.time, record.opens, sorted([positions[code] for code in record.items]))
        for record in records
    ]
    return _encoder.encode((_VERSION, user, items, baskets))


def decode(states: Sequence[bytes], further: Iterable[Id] = ()) -> BasketColumns:
    """Return the baskets in these states, one user each. Items in `further` are listed as well."""
    columns = BasketColumns.of(
        (user, [(b.basket, b.time, [items[position] for position in b.items], b.opens) for b in baskets])
        for _, user, items, baskets in map(_decoded, states)
    )
    return columns._replace(items=list(dict.fromkeys([*columns.items, *further])))


def _decoded(state: bytes) -> _State:
    if state[1] != _VERSION:  # the byte after the header of a list of four; a small number is one byte
        raise SparkError(
            "the checkpoint was written by another version of unbasket. Export its users with that version's "
            "`unbasket spark to-db`, and start a new checkpoint"
        )
    return _decoder.decode(state)
