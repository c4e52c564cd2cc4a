"""The state of a user in Spark's state store, and joint incremental and decremental updates (paper, Algorithm 1).

The state is the user's baskets as bytes and holds no trace of its past: equal histories are equal bytes. The paper's
f_incr and f_decr are one operation here: events change the user's history, and the fold replays it. An executor needs
no neighbors, so it builds no index.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from unbasket.core.model import FoldWorkspace, queries
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Event, Learn
from unbasket.domain.ids import Id, in_order
from unbasket.domain.results import Learned
from unbasket.engine.histories import HistoryState
from unbasket.errors import SparkError
from unbasket.params import Params

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


class Vector(NamedTuple):
    """A user's vector (Eq. uservector): items in the order of their ids, and their weights before rounding."""

    items: list[Id]
    weights: list[float]


class Model(NamedTuple):
    """A user's state in Spark, and the vector folded from it."""

    state: bytes
    vector: Vector


class Unchanged(NamedTuple):
    """The result of events that changed nothing: known baskets, or nothing to forget."""


class Update(NamedTuple):
    """A user's state before (None: a new user), and at least one event of the user."""

    state: bytes | None
    events: Sequence[Event]


def update_states(params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]:
    """Apply the events of many users; return for each a new model, None if no basket is left, or `Unchanged`.

    Many users share one `HistoryState`, since creating it costs more than applying an event.
    """
    state = HistoryState(params)
    bought = [item for user in users for event in user.events if isinstance(event, Learn) for item in event.items]
    state.load(decode([user.state for user in users if user.state is not None], bought))
    changed = [sum(_apply(state, event) for event in user.events) > 0 for user in users]
    names = [user.events[0].user for user in users]
    left = [name for name, change in zip(names, changed, strict=True) if change and name in state.users]
    models = dict(zip(left, _models(state, left), strict=True))
    return [models.get(name) if change else Unchanged() for name, change in zip(names, changed, strict=True)]


def load_states(params: Params, columns: BasketColumns) -> Iterator[tuple[Id, Model]]:
    """Yield the models of new users with these baskets."""
    state = HistoryState(params)
    state.load(columns)
    return zip(columns.users, _models(state, columns.users), strict=True)


def _apply(state: HistoryState, event: Event) -> bool:
    """Apply an event; return whether it changed anything."""
    if isinstance(event, Learn):
        return state.learn(*event) is not Learned.UNCHANGED
    return bool(state.forget(*event))


def _models(state: HistoryState, users: list[Id]) -> Iterator[Model]:
    names, labels, space = state.items.names, state.items.labels, FoldWorkspace()
    for user in users:
        codes, weights = queries.vector(state.histories, space, state.rule, state.users.codes[user])
        order = np.argsort(labels[codes])
        vector = Vector([names[code] for code in codes[order].tolist()], weights[order].tolist())
        yield Model(encode(state, user), vector)
