"""The search against brute force in exact integers: the same neighbors, the same scores, bit for bit."""

import random
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import pytest

from unbasket.kernels.jit import Codes, Int64s
from unbasket.memory import Memory
from unbasket.neighbors import crowd as crowds
from unbasket.neighbors import search
from unbasket.neighbors.crowd import ITEM, WEIGHT
from unbasket.neighbors.index import ONE, Index, gather_crowd, vector_of
from unbasket.neighbors.search import SearchSpace, new_search_space
from unbasket.params import Params

Function = TypeVar("Function", bound=Callable[..., Any])
compiled: Callable[[Function], Function] = cast("Any", numba.njit)

ITEMS = 25


@compiled
def dissolve_crowd(index: Index) -> None:
    crowds.establish(index.crowd, np.zeros(0, np.uint32))


@compiled
def uses_crowd(index: Index, query: Codes, user: int, k: int, order: Int64s, space: SearchSpace) -> bool:
    """Whether a recommendation starts from the crowd's sums."""
    found = search.nearest(index, query, user, k, order, space)
    answer = search._use_crowd(index, found, space)
    search._forget_candidates(space, found)
    return answer


@compiled
def leftovers(space: SearchSpace) -> Any:
    """How many entries of the work space are not zero."""
    return (
        np.count_nonzero(space.dot)
        + np.count_nonzero(space.met)
        + np.count_nonzero(space.candidates)
        + np.count_nonzero(space.keys)
        + np.count_nonzero(space.sums)
        + np.count_nonzero(space.seen)
    )


@compiled
def widths(space: SearchSpace) -> tuple[int, int]:
    return len(space.dot), len(space.sums)


class Shop:
    """A memory of random users, and brute force beside it."""

    def __init__(self, seed: int, users: int, k: int, alpha: float = 0.7) -> None:
        self.chance = random.Random(seed)
        self.memory = Memory(Params(group_size=2, basket_decay=0.5, group_decay=0.5, neighbors=k, alpha=alpha))
        self.space = new_search_space()
        names: list[Any] = [*range(users // 2), *(f"u{i}" for i in range(users - users // 2))]
        self.chance.shuffle(names)  # so that codes are in another order than ids
        for name in names:
            for basket in range(self.chance.randint(1, 4)):
                items: list[Any] = [
                    f"i{item}" if item % 2 else item
                    for item in self.chance.sample(range(ITEMS), self.chance.choice([1, 1, 2, 6]))
                ]
                self.memory.learn(name, items, basket, None)
        for name in self.chance.sample(names, users // 5):
            self.memory.forget(name, None, None)

    def names(self) -> list[Any]:
        return self.memory.users.sorted()

    def code(self, user: Any) -> int:
        return self.memory.users.codes[user]

    def dense(self, records: Codes) -> Int64s:
        vector = np.zeros(len(self.memory.items.names), np.int64)
        vector[records[:, ITEM]] = records[:, WEIGHT]
        return vector

    def vector(self, user: Any) -> Int64s:
        return self.dense(vector_of(self.memory.index, self.code(user)))

    def nearest(self, query: Int64s, leave_out: Any, k: int) -> list[tuple[int, int]]:
        """By brute force: (squared distance, code) of the k nearest, nearest first, equally near ones by id."""
        others = [name for name in self.names() if name != leave_out]
        distances = [(int(((self.vector(name) - query) ** 2).sum()), self.code(name)) for name in others]
        return sorted(distances, key=lambda pair: pair[0])[:k]  # stable, and names are in the order of ids

    def best(self, query: Int64s, leave_out: Any, n: int, banned: list[int]) -> list[tuple[int, float]]:
        """By brute force: the best items and their scores."""
        params = self.memory.params
        found = self.nearest(query, leave_out, params.neighbors)
        names = self.memory.users.names
        total = sum((self.vector(names[code]) for _, code in found), np.zeros(len(query), np.int64))
        share = (1.0 - params.alpha) / max(len(found), 1)
        codes = [self.memory.items.codes[name] for name in self.memory.items.sorted()]
        scores = [
            (code, (params.alpha * float(query[code]) + share * float(total[code])) / ONE)
            if query[code]
            else (code, share * float(total[code]) / ONE)
            for code in codes
            if code not in banned
        ]
        return sorted((s for s in scores if s[1] > 0), key=lambda score: -score[1])[:n]

    def recommend(self, query: Codes, leave_out: int, n: int, banned: list[int]) -> list[tuple[int, float]]:
        memory = self.memory
        items, scores = np.zeros(n, np.uint32), np.zeros(n)
        count = search.recommend(
            memory.index,
            query,
            leave_out,
            memory.params.neighbors,
            memory.params.alpha,
            np.array(banned, np.uint32),
            memory.users.labels,
            memory.items.labels,
            self.space,
            items,
            scores,
        )
        assert not scores[count:].any()
        return list(zip(items[:count].tolist(), scores[:count].tolist(), strict=True))

    def neighbors(self, query: Codes, leave_out: int, k: int) -> list[tuple[int, int]]:
        memory = self.memory
        codes, squares = search.neighbors(memory.index, query, leave_out, k, memory.users.labels, self.space)
        return sorted(
            zip(squares.tolist(), codes.tolist(), strict=True), key=lambda p: (p[0], memory.users.labels[p[1]])
        )

    def uses_crowd(self, user: Any) -> bool:
        index, code = self.memory.index, self.code(user)
        labels, k = self.memory.users.labels, self.memory.params.neighbors
        return uses_crowd(index, vector_of(index, code), code, k, labels, self.space)

    def check(self, user: Any, n: int = 10, banned: list[int] | None = None) -> None:
        query = vector_of(self.memory.index, self.code(user))
        expected = self.best(self.vector(user), user, n, banned or [])
        assert self.recommend(query, self.code(user), n, banned or []) == expected
        assert leftovers(self.space) == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 5, 1000])
def test_neighbors_are_the_nearest_by_brute_force(seed: int, k: int) -> None:
    shop = Shop(seed, users=60, k=5)
    for name in shop.names():
        query, code = vector_of(shop.memory.index, shop.code(name)), shop.code(name)
        assert shop.neighbors(query, code, k) == shop.nearest(shop.vector(name), name, k)
        assert leftovers(shop.space) == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 3, 20, 1000])
@pytest.mark.parametrize("alpha", [0.7, 0.0, 1.0])
def test_recommendations_are_those_of_brute_force(seed: int, k: int, alpha: float) -> None:
    shop = Shop(seed, users=40, k=k, alpha=alpha)
    for name in shop.names():
        shop.check(name, n=shop.chance.randint(1, 12))


@pytest.mark.parametrize("seed", range(5))
def test_the_crowd_changes_no_answer(seed: int) -> None:
    shop = Shop(seed, users=40, k=30)
    gather_crowd(shop.memory.index)
    assert all(shop.uses_crowd(name) for name in shop.names())
    for name in shop.names():
        shop.check(name, n=40)
        shop.check(name, n=3, banned=[0, 3, 4])
    dissolve_crowd(shop.memory.index)
    assert not any(shop.uses_crowd(name) for name in shop.names())
    for name in shop.names():
        shop.check(name, n=40)
        shop.check(name, n=3, banned=[0, 3, 4])


def test_a_crowd_that_has_changed_since_it_was_chosen() -> None:
    shop = Shop(9, users=40, k=20)
    gather_crowd(shop.memory.index)
    for name in shop.names()[::3]:
        shop.memory.forget(name, None, None)
    for name in shop.names()[::4]:
        shop.memory.learn(name, [2, "i3", "another"], "new", None)
    for number in range(10):  # they get the codes of forgotten members
        shop.memory.learn(f"new {number}", [number, "another", "i5"], 0, None)
    assert any(shop.uses_crowd(name) for name in shop.names())
    for name in shop.names():
        shop.check(name, n=40)


@pytest.mark.parametrize("n", [1, 5, 26, 200])
@pytest.mark.parametrize("banned", [[], [1], [0, 2, 2, 7, 11], list(range(ITEMS))])
def test_banned_items_are_left_out_before_the_cut(n: int, banned: list[int]) -> None:
    shop = Shop(3, users=30, k=10)
    for name in shop.names():
        shop.check(name, n, banned)


def test_a_query_that_is_nobodys() -> None:
    shop = Shop(4, users=30, k=4)
    query = np.array([[0, ONE // 2], [3, ONE // 3], [5, 1]], np.uint32)
    assert shop.neighbors(query, -1, 7) == shop.nearest(shop.dense(query), None, 7)
    assert shop.recommend(query, -1, 30, [3]) == shop.best(shop.dense(query), None, 30, [3])
    assert shop.neighbors(np.zeros((0, 2), np.uint32), -1, 3) == shop.nearest(shop.dense(query[:0]), None, 3)
    assert leftovers(shop.space) == 0


def test_a_query_in_place_of_a_users_own_vector_leaves_him_out() -> None:
    """Also when it has nothing in common with what is stored of him."""
    shop = Shop(4, users=30, k=4)
    for name in shop.names():
        item = shop.chance.choice(np.flatnonzero(shop.vector(name) == 0).tolist())
        query = np.array([[item, ONE]], np.uint32)
        for k in (1, 10, 100):
            assert shop.neighbors(query, shop.code(name), k) == shop.nearest(shop.dense(query), name, k)
        assert shop.recommend(query, shop.code(name), 30, []) == shop.best(shop.dense(query), name, 30, [])


def test_a_small_user_with_nothing_in_common_can_be_nearer_than_a_large_one_with_much() -> None:
    shop = Shop(0, users=0, k=1)
    learn = shop.memory.learn
    learn("asks", ["a"], 0, None)
    learn("large", ["a", "b", "c", "d"], 0, None)
    learn("small", ["z"], 0, None)
    query = vector_of(shop.memory.index, shop.code("asks"))
    assert shop.neighbors(query, shop.code("asks"), 1) == [(2 * ONE**2, shop.code("small"))]
    assert shop.neighbors(query, shop.code("asks"), 2) == shop.nearest(shop.vector("asks"), "asks", 2)


def test_equally_near_users_are_taken_in_the_order_of_their_ids() -> None:
    shop = Shop(0, users=0, k=1)
    names: list[Any] = ["zoe", 7, "ann", -3, "bob", 40]
    for name in ["asks", *names]:
        shop.memory.learn(name, ["x", f"of {name}"], 0, None)
    query, code = vector_of(shop.memory.index, shop.code("asks")), shop.code("asks")
    for k in range(1, 8):
        found = [shop.memory.users.names[other] for _, other in shop.neighbors(query, code, k)]
        assert found == [-3, 7, 40, "ann", "bob", "zoe"][:k]


def test_alone() -> None:
    shop = Shop(0, users=0, k=3)
    shop.memory.learn("u", ["a", "b"], 0, None)
    query = vector_of(shop.memory.index, 0)
    assert shop.neighbors(query, 0, 3) == []
    shop.check("u")
    assert [score for _, score in shop.recommend(query, 0, 5, [])] == [0.7, 0.7]


def test_many_users_are_answered_as_one_by_one() -> None:
    shop, n = Shop(6, users=40, k=8), 7
    owners = np.array([shop.code(name) for name in reversed(shop.names())], np.int64)
    items, scores = np.zeros((len(owners), n), np.uint32), np.zeros((len(owners), n))
    counts = np.zeros(len(owners), np.int64)
    labels = shop.memory.users.labels, shop.memory.items.labels
    banned = np.array([2, 5], np.uint32)
    search.recommend_all(shop.memory.index, owners, 8, 0.7, banned, *labels, shop.space, items, scores, counts)
    for i, owner in enumerate(owners.tolist()):
        answer = list(zip(items[i, : counts[i]].tolist(), scores[i, : counts[i]].tolist(), strict=True))
        assert answer == shop.recommend(vector_of(shop.memory.index, owner), owner, n, [2, 5])
    assert leftovers(shop.space) == 0


def test_neighbors_then_their_sums_then_the_best_is_a_recommendation() -> None:
    """The three steps apart, as they are taken where users are spread over machines; sums may come in parts."""
    shop, n = Shop(9, users=40, k=8), 7
    memory, work = shop.memory, np.zeros(len(shop.memory.items.names), np.int64)
    for name in shop.names():
        query, owner = vector_of(memory.index, shop.code(name))[:, : WEIGHT + 1].copy(), shop.code(name)
        codes, _ = search.neighbors(memory.index, query, owner, 8, memory.users.labels, shop.space)
        parts = [search.sum_of(memory.index, part, shop.space) for part in (codes[:3].copy(), codes[3:].copy())]
        items, totals = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        best, scores = search.best(query, items, totals, len(codes), 0.7, memory.items.labels, work, n)
        expected = shop.recommend(vector_of(memory.index, owner), owner, n, [])
        assert list(zip(best.tolist(), scores.tolist(), strict=True)) == expected
        assert leftovers(shop.space) == 0
        assert not work.any()


def test_holders_are_the_parts_of_a_score() -> None:
    shop = Shop(2, users=30, k=6)
    for name in shop.names():
        near = [shop.vector(shop.memory.users.names[code]) for _, code in shop.nearest(shop.vector(name), name, 6)]
        for item in [*shop.memory.items.codes.values(), -1]:
            weights = [int(vector[item]) if item >= 0 else 0 for vector in near]
            own = int(shop.vector(name)[item]) if item >= 0 else 0
            labels = shop.memory.users.labels
            found = search.holders(shop.memory.index, shop.code(name), item, 6, labels, shop.space)
            assert found == (own, sum(weights), sum(weight > 0 for weight in weights), len(near))
    assert leftovers(shop.space) == 0


def test_a_work_space_grows_with_the_index() -> None:
    shop = Shop(1, users=20, k=5)
    shop.check(shop.names()[0])
    before = widths(shop.space)
    for user in range(100, 200):
        shop.memory.learn(user, [f"item {user}", 3], 0, None)
    for name in shop.names():
        shop.check(name)
    assert widths(shop.space) > before


def test_work_spaces_are_independent() -> None:
    shop = Shop(1, users=20, k=5)
    name = shop.names()[0]
    first = shop.recommend(vector_of(shop.memory.index, shop.code(name)), shop.code(name), 5, [])
    shop.space = new_search_space()
    assert shop.recommend(vector_of(shop.memory.index, shop.code(name)), shop.code(name), 5, []) == first
