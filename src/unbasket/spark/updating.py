"""Joint incremental and decremental updates of users (paper, Algorithm 1), with the engine's own histories.

The paper's f_incr and f_decr are one operation here: events change the user's history, and the fold replays it. An
executor needs no neighbors, so it builds no index.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from unbasket.core.model import FoldWorkspace, queries
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Event, Learn
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Learned
from unbasket.engine.histories import HistoryState
from unbasket.params import Params
from unbasket.spark.state import decode, encode


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
    result: Learned | Forgotten
    if isinstance(event, Learn):
        result = state.learn(*event)
        return result is not Learned.UNCHANGED
    return bool(state.forget(*event))


def _models(state: HistoryState, users: list[Id]) -> Iterator[Model]:
    names, labels, space = state.items.names, state.items.labels, FoldWorkspace()
    for user in users:
        codes, weights = queries.vector(state.histories, space, state.rule, state.users.codes[user])
        order = np.argsort(labels[codes])
        vector = Vector([names[code] for code in codes[order].tolist()], weights[order].tolist())
        yield Model(encode(state, user), vector)
