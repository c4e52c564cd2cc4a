"""Update methods for one user's vector: two baselines and this engine. Each update returns its duration in seconds."""

from time import perf_counter
from typing import Protocol

import numpy as np
import polars as pl

from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.paper_rules import PaperUser
from unbasket.params import Params

USER = 0


class UpdateMethod(Protocol):
    """One user's history, oldest basket at position 0; items count from 0."""

    def load(self, baskets: list[list[int]]) -> None:
        """Append baskets, untimed."""
        for items in baskets:
            self.add(items)

    def add(self, items: list[int]) -> float:
        """Append a basket."""

    def delete(self, position: int) -> float:
        """Delete a basket."""


class DenseRetrain(UpdateMethod):
    """The paper's baseline: recomputes the vector from the whole history, over the whole vocabulary.

    In its favor, the multi-hot matrix is precomputed and only the weighted sum of its rows is timed. It uses einsum,
    since @ on a busy machine waits for BLAS's other threads up to a hundred times longer than it computes.
    """

    def __init__(self, params: Params, dimension: int, capacity: int) -> None:
        self._params = params
        self._matrix = np.zeros((capacity, dimension))
        self._count = 0
        self.vector = np.zeros(dimension)

    def load(self, baskets: list[list[int]]) -> None:
        for items in baskets:
            self._append(items)

    def add(self, items: list[int]) -> float:
        self._append(items)
        return self._retrain()

    def _append(self, items: list[int]) -> None:
        self._matrix[self._count, items] = 1.0
        self._count += 1

    def delete(self, position: int) -> float:
        self._matrix[position : self._count - 1] = self._matrix[position + 1 : self._count]
        self._count -= 1
        return self._retrain()

    def _retrain(self) -> float:
        started = perf_counter()
        m, count = self._params.group_size, self._count
        groups = -(-count // m)
        group, index = np.divmod(np.arange(count), m)
        size = np.minimum(m, count - group * m)
        weights = self._params.group_decay ** (groups - 1 - group) * self._params.basket_decay ** (size - 1 - index)
        self.vector = np.einsum("i,ij->j", weights / (size * groups), self._matrix[:count])
        return perf_counter() - started


class PaperRules(UpdateMethod):
    """The paper's incremental and decremental rules (sections 4.2 and 4.3)."""

    def __init__(self, params: Params, dimension: int) -> None:
        self._user = _FromNewest(params.group_size, params.basket_decay, params.group_decay, dimension)
        self._count = 0

    def add(self, items: list[int]) -> float:
        started = perf_counter()
        self._user.add_basket(items)
        self._count += 1
        return perf_counter() - started

    def delete(self, position: int) -> float:
        started = perf_counter()
        self._user.delete_basket(position - self._count)
        self._count -= 1
        return perf_counter() - started


class _FromNewest(PaperUser):
    """A user whose positions count from the newest basket, -1: listing all baskets would cost more than the rule."""

    def _locate(self, position: int) -> tuple[int, int]:
        for j in range(len(self.groups) - 1, -1, -1):
            size = len(self.groups[j].baskets)
            if size + position >= 0:
                return j, size + position
            position += size
        raise InvalidRequestError(f"no basket {-position} positions before the oldest")


class Engine(UpdateMethod):
    """This package's public API: updates history, vector and index and, optionally, recommends."""

    def __init__(self, params: Params, others: pl.DataFrame, *, recommend: bool) -> None:
        self._engine = Recommender(params)
        if others.height:
            self._engine.fit(others)
        self._recommend = recommend
        self._baskets: list[int] = []
        self._events = 0

    def add(self, items: list[int]) -> float:
        self._events += 1
        self._baskets.append(self._events)
        started = perf_counter()
        self._engine.learn(USER, items, basket=self._events)
        return self._elapsed(started)

    def delete(self, position: int) -> float:
        basket = self._baskets.pop(position)
        started = perf_counter()
        self._engine.forget(USER, basket=basket)
        return self._elapsed(started)

    def _elapsed(self, started: float) -> float:
        if self._recommend:
            self._engine.recommend(USER)
        return perf_counter() - started
