"""Brute force in exact integers, which the search must equal bit for bit."""

import random
from typing import Any, Literal

import numpy as np

from unbasket.core.arrays import Int64s
from unbasket.core.check import testing
from unbasket.core.model import FACTOR_ONE, ONE, Vector
from unbasket.core.search import Query, QueryBatch, SearchWorkspace
from unbasket.engine.state import EngineState
from unbasket.engine.workspaces import ThreadPool
from unbasket.params import Params

ITEMS = 25


def vector_of(items: list[int], weights: list[int]) -> Vector:
    return Vector(np.array(items, np.uint32), np.array(weights, np.uint32))


def query_of(
    vector: Vector,
    user: int,
    n: int,
    banned: list[int],
    allowed: list[int] | None,
    probe: Vector | None = None,
    least: int = 0,
) -> Query:
    choice = np.array(banned, np.uint32), None if allowed is None else np.array(allowed, np.uint32)
    return Query(vector, user, choice, n, probe, least)


class Shop:
    """An engine state with random users, and brute force beside it."""

    thread_pool: ThreadPool | None = None

    def __init__(self, seed: int, users: int, k: int, alpha: float | Literal["learned"] = 0.7) -> None:
        self.chance = random.Random(seed)
        size = 1 if alpha == "learned" else 2
        self.state = EngineState(Params(group_size=size, basket_decay=0.5, group_decay=0.5, neighbors=k, alpha=alpha))
        self.space = SearchWorkspace()
        self.space.thread_pool = self.thread_pool
        names: list[Any] = [*range(users // 2), *(f"u{i}" for i in range(users - users // 2))]
        self.chance.shuffle(names)  # codes are in another order than ids
        for name in names:
            for basket in range(self.chance.randint(1, 4)):
                items: list[Any] = [
                    f"i{item}" if item % 2 else item
                    for item in self.chance.sample(range(ITEMS), self.chance.choice([1, 1, 2, 6]))
                ]
                self.state.learn(name, items, basket, None)
        for name in self.chance.sample(names, users // 5):
            self.state.forget(name, None, None)

    def names(self) -> list[Any]:
        return self.state.users.sorted()

    def code(self, user: Any) -> int:
        return self.state.users.codes[user]

    def query(self, user: Any) -> Vector:
        vector = self.state.index.vector_of(self.code(user))
        self.state.weigh(vector, 0)
        return vector

    def dense(self, vector: Vector) -> Int64s:
        weights = np.zeros(len(self.state.items.names), np.int64)
        weights[vector.items] = vector.weights
        return weights

    def vector(self, user: Any) -> Int64s:
        return self.dense(self.query(user))

    def alpha(self) -> float:
        sums = self.state.sums
        return float(self.state.params.alpha) if sums is None else sums.alpha() / ONE

    def own(self, code: int, weight: int, scale: int) -> float:
        """Return the own weight of an item: factor times scaled weight."""
        factor = FACTOR_ONE if self.state.sums is None else self.state.sums.factor(code, 0)
        return float(factor) * (weight * scale // FACTOR_ONE) / FACTOR_ONE

    def scaled(self, user: Any) -> Int64s:
        return self.vector(user) * self.query(user).scale // FACTOR_ONE

    def nearest(self, query: Int64s, leave_out: Any, k: int) -> list[tuple[int, int]]:
        """Return (squared distance, code) of the k nearest by brute force, nearest first, ties by id."""
        codes = [self.code(name) for name in self.names() if name != leave_out]
        vectors = np.zeros((len(codes), len(query)), np.int64)
        for row, code in zip(vectors, codes, strict=True):
            vector = self.state.index.vector_of(code)
            row[vector.items] = vector.weights
        distances = zip(((vectors - query) ** 2).sum(axis=1).tolist(), codes, strict=True)
        return sorted(distances, key=lambda pair: pair[0])[:k]  # stable: ties stay in the order of ids

    def best(
        self,
        query: Int64s,
        leave_out: Any,
        n: int,
        banned: list[int],
        allowed: list[int] | None = None,
        probe: Int64s | None = None,
        least: int = 0,
        scale: int = FACTOR_ONE,
    ) -> list[tuple[int, float]]:
        """Return the best items and their scores by brute force."""
        params = self.state.params
        found = self.nearest(query if probe is None else probe, leave_out, params.neighbors)
        names = self.state.users.names
        vectors = [self.scaled(names[code]) for _, code in found]
        total = sum(vectors, np.zeros(len(query), np.int64))
        having = sum(((self.vector(names[code]) > 0) for _, code in found), np.zeros(len(query), np.int64))
        total[having < least] = 0
        share = (1.0 - self.alpha()) / max(len(found), 1)
        codes = [self.state.items.codes[name] for name in self.state.items.sorted()]
        scores = [
            (code, (self.alpha() * self.own(code, int(query[code]), scale) + share * float(total[code])) / ONE)
            if query[code]
            else (code, share * float(total[code]) / ONE)
            for code in codes
            if code not in banned and (allowed is None or code in allowed)
        ]
        return sorted((s for s in scores if s[1] > 0), key=lambda score: -score[1])[:n]

    def recommend(
        self, query: Vector, leave_out: int, n: int, banned: list[int], allowed: list[int] | None = None
    ) -> list[tuple[int, float]]:
        return self.answers([query_of(query, leave_out, n, banned, allowed)])[0]

    def answers(self, queries: list[Query]) -> list[list[tuple[int, float]]]:
        state = self.state
        orders = state.users.order, state.items.order
        self.space.recommend(QueryBatch(state.index, queries, state.params.neighbors, self.alpha(), orders))
        return [query.take() for query in queries]

    def neighbors(self, query: Vector, leave_out: int, k: int) -> list[tuple[int, int]]:
        state = self.state
        codes, squares = self.space.neighbors(state.index, query, leave_out, k, state.users.order)
        return sorted(
            zip(squares.tolist(), codes.tolist(), strict=True), key=lambda p: (p[0], state.users.labels[p[1]])
        )

    def uses_hubs(self, user: Any) -> bool:
        state, code = self.state, self.code(user)
        k, order = state.params.neighbors, state.users.order
        return testing.uses_hubs(self.space, state.index, self.query(user), code, k, order)

    def check(self, user: Any, n: int = 10, banned: list[int] | None = None) -> None:
        self.check_allowed(user, n, banned or [], None)

    def check_allowed(self, user: Any, n: int, banned: list[int], allowed: list[int] | None) -> None:
        query = self.query(user)
        expected = self.best(self.vector(user), user, n, banned, allowed, scale=query.scale)
        assert self.recommend(query, self.code(user), n, banned, allowed) == expected
        assert self.space.residue() == 0
