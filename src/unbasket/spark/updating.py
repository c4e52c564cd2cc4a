"""Joint incremental and decremental updates of users (paper, Algorithm 1), with the engine's own memory.

The paper's f_incr and f_decr are one operation here: events change the user's history, and the fold replays it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from unbasket.core import FoldWorkspace
from unbasket.core.model import queries
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Event, Learn
from unbasket.domain.ids import Id
from unbasket.domain.results import Forgotten, Learned
from unbasket.engine.state import EngineState
from unbasket.params import Params
from unbasket.spark.state import decode, encode


class Vector(NamedTuple):
    """A user's vector (Eq. uservector): items in the order of their ids, and their weights before rounding."""

    items: list[Id]
    weights: list[float]


class Model(NamedTuple):
    """What Spark holds about a user, and the vector that comes out."""

    state: bytes
    vector: Vector


class Unchanged(NamedTuple):
    """Nothing has changed: the baskets were known already, or there was nothing to forget."""


class Update(NamedTuple):
    """A user's state before (None if there is none), and the user's events, at least one."""

    state: bytes | None
    events: Sequence[Event]


def update_states(params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]:
    """What becomes of each user: a new model, None if the user is gone, or `Unchanged`.

    Many users at a time, since creating a memory costs more than applying an event to it.
    """
    memory = EngineState(params)
    bought = [item for user in users for event in user.events if isinstance(event, Learn) for item in event.items]
    memory.load(decode([user.state for user in users if user.state is not None], bought))
    changed = [sum(_apply(memory, event) for event in user.events) > 0 for user in users]
    names = [user.events[0].user for user in users]
    left = [name for name, change in zip(names, changed, strict=True) if change and name in memory.users]
    models = dict(zip(left, _models(memory, left), strict=True))
    return [models.get(name) if change else Unchanged() for name, change in zip(names, changed, strict=True)]


def load_states(params: Params, orders: BasketColumns) -> Iterator[tuple[Id, Model]]:
    """The models of users who have these orders and nothing else."""
    memory = EngineState(params)
    memory.load(orders)
    return zip(orders.users, _models(memory, orders.users), strict=True)


def _apply(memory: EngineState, event: Event) -> bool:
    """Apply an event, and say whether it changed anything."""
    result: Learned | Forgotten
    if isinstance(event, Learn):
        result = memory.learn(*event)
        return result is not Learned.UNCHANGED
    return bool(memory.forget(*event))


def _models(memory: EngineState, users: list[Id]) -> Iterator[Model]:
    names, labels, space = memory.items.names, memory.items.labels, FoldWorkspace()
    for user in users:
        codes, weights = queries.vector(memory.histories, space, memory.rule, memory.users.codes[user])
        order = np.argsort(labels[codes])
        vector = Vector([names[code] for code in codes[order].tolist()], weights[order].tolist())
        yield Model(encode(memory, user), vector)
