"""Joint incremental and decremental updates of one user (paper, Algorithm 1), with the engine's own memory.

The paper's f_incr and f_decr are one operation here: the events happen to the user's history, and the fold replays it.
"""

from collections.abc import Iterable
from functools import cache
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


class Updater:
    """A memory that holds one user at a time, for as long as his events take."""

    def __init__(self, params: Params) -> None:
        self._memory = Memory(params)
        self._space = new_fold_space()

    def update(self, state: bytes | None, events: Iterable[Event]) -> tuple[bytes | None, Vector | None, bool]:
        """The user's state after the events, his vector (of both None: he is gone), and whether anything changed."""
        memory = self._memory
        if state is not None:
            memory.load(decode(state))
        changed = False
        user: Id | None = None
        for event in events:
            user = event.user
            changed |= self._happen(event)
        if user is None or user not in memory.users:
            return None, None, changed
        try:
            return encode(memory.orders([user])), self.vector(user), changed
        finally:
            memory.forget(user, None, None)

    def load(self, orders: Orders) -> list[tuple[Id, bytes, Vector]]:
        """State and vector of each of many users at once."""
        memory = self._memory
        memory.load(orders)
        loaded = [(user, encode(memory.orders([user])), self.vector(user)) for user in orders.users]
        for user in orders.users:
            memory.forget(user, None, None)
        return loaded

    def vector(self, user: Id) -> Vector:
        """The vector of the user in memory."""
        memory = self._memory
        codes, weights = update.vector(memory.histories, self._space, memory.rule, memory.users.codes[user])
        order = np.argsort(memory.items.labels[codes])
        names = memory.items.names
        return Vector([names[code] for code in codes[order].tolist()], weights[order].tolist())

    def _happen(self, event: Event) -> bool:
        result: Learned | Forgotten
        if isinstance(event, Learn):
            result, _ = self._memory.learn(*event)
            return result is not Learned.UNCHANGED
        return bool(self._memory.forget(*event))


@cache
def updater(params: Params) -> Updater:
    """The updater of this Python worker, which serves many partitions and batches, one after another."""
    return Updater(params)
