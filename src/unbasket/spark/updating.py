"""Joint incremental and decremental updates of one user (paper, Algorithm 1), with the engine's own memory.

The paper's f_incr and f_decr are one operation here: the events happen to the user's history, and the fold replays it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from unbasket import update
from unbasket.events import Event, Learn
from unbasket.ids import Id
from unbasket.memory import Memory
from unbasket.model.space import new_fold_space
from unbasket.orders import Orders
from unbasket.params import Params
from unbasket.results import Forgotten, Learned
from unbasket.spark.state import decode, encode


class Vector(NamedTuple):
    """A user's vector (Eq. uservector): items in the order of their ids, and their weights before rounding."""

    items: list[Id]
    weights: list[float]


class Model(NamedTuple):
    """What Spark holds of a user, and what comes out for him."""

    state: bytes
    vector: Vector


def update_state(params: Params, state: bytes | None, events: Sequence[Event]) -> tuple[Model | None, bool]:
    """A user after events of his, of which there is at least one (None: he is gone), and whether anything changed."""
    memory = Memory(params)
    if state is not None:
        memory.load(decode(state))
    changes = [_happen(memory, event) for event in events]
    user = events[0].user
    return _model(memory, user) if user in memory.users else None, any(changes)


def load_states(params: Params, orders: Orders) -> Iterator[tuple[Id, Model]]:
    """Many users who have nothing but these orders."""
    memory = Memory(params)
    memory.load(orders)
    return ((user, _model(memory, user)) for user in orders.users)


def _happen(memory: Memory, event: Event) -> bool:
    """Let an event happen; whether it changed anything."""
    result: Learned | Forgotten
    if isinstance(event, Learn):
        result, _ = memory.learn(*event)
        return result is not Learned.UNCHANGED
    return bool(memory.forget(*event))


def _model(memory: Memory, user: Id) -> Model:
    codes, weights = update.vector(memory.histories, new_fold_space(), memory.rule, memory.users.codes[user])
    order = np.argsort(memory.items.labels[codes])
    names = memory.items.names
    vector = Vector([names[code] for code in codes[order].tolist()], weights[order].tolist())
    return Model(encode(memory.orders([user])), vector)
