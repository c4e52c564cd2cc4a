"""The search against brute force in exact integers: the same neighbors, the same scores, bit for bit."""

import random
from typing import Any

import numpy as np
import pytest

from unbasket.core.arrays import Int64s
from unbasket.core.check import testing
from unbasket.core.model.fold import ONE, Vector
from unbasket.core.search.search import Query, QueryBatch, SearchWorkspace
from unbasket.engine.state import EngineState
from unbasket.engine.thread_pool import Helpers, Task
from unbasket.params import Params

ITEMS = 25


class Eager(Helpers):
    """Helpers that have done all there is to do before the one who asks begins."""

    def ask(self, task: Task) -> None:
        task.begin()


MANNERS: dict[str, tuple[int, Helpers | None]] = {
    "one shard": (64, None),
    "shards": (4, None),
    "shards, with help": (4, Helpers(2, worth=1)),
    "shards, searched by others": (4, Eager(2, worth=1)),
}


@pytest.fixture(autouse=True, params=MANNERS)
def shard_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Every test, with users in one shard of the index and in many, and with other threads that help or do not."""
    size, helpers = MANNERS[request.param]
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", size)
    monkeypatch.setattr(Shop, "helpers", helpers)
    return size


def vector_of(items: list[int], weights: list[int]) -> Vector:
    return Vector(np.array(items, np.uint32), np.array(weights, np.uint32))


def question_of(query: Vector, leave_out: int, n: int, banned: list[int], allowed: list[int] | None) -> Query:
    choice = np.array(banned, np.uint32), None if allowed is None else np.array(allowed, np.uint32)
    return Query(query, leave_out, choice, n)


class Shop:
    """A memory of random users, and brute force beside it."""

    helpers: Helpers | None = None

    def __init__(self, seed: int, users: int, k: int, alpha: float = 0.7) -> None:
        self.chance = random.Random(seed)
        self.state = EngineState(Params(group_size=2, basket_decay=0.5, group_decay=0.5, neighbors=k, alpha=alpha))
        self.space = SearchWorkspace()
        self.space.helpers = self.helpers
        names: list[Any] = [*range(users // 2), *(f"u{i}" for i in range(users - users // 2))]
        self.chance.shuffle(names)  # so that codes are in another order than ids
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
        return self.state.index.vector_of(self.code(user))

    def dense(self, vector: Vector) -> Int64s:
        weights = np.zeros(len(self.state.items.names), np.int64)
        weights[vector.items] = vector.weights
        return weights

    def vector(self, user: Any) -> Int64s:
        return self.dense(self.query(user))

    def nearest(self, query: Int64s, leave_out: Any, k: int) -> list[tuple[int, int]]:
        """By brute force: (squared distance, code) of the k nearest, nearest first, equally near ones by id."""
        codes = [self.code(name) for name in self.names() if name != leave_out]
        vectors = np.zeros((len(codes), len(query)), np.int64)
        for row, code in zip(vectors, codes, strict=True):
            vector = self.state.index.vector_of(code)
            row[vector.items] = vector.weights
        distances = zip(((vectors - query) ** 2).sum(axis=1).tolist(), codes, strict=True)
        return sorted(distances, key=lambda pair: pair[0])[:k]  # stable, and names are in the order of ids

    def best(
        self, query: Int64s, leave_out: Any, n: int, banned: list[int], allowed: list[int] | None = None
    ) -> list[tuple[int, float]]:
        """By brute force: the best items and their scores."""
        params = self.state.params
        found = self.nearest(query, leave_out, params.neighbors)
        names = self.state.users.names
        total = sum((self.vector(names[code]) for _, code in found), np.zeros(len(query), np.int64))
        share = (1.0 - params.alpha) / max(len(found), 1)
        codes = [self.state.items.codes[name] for name in self.state.items.sorted()]
        scores = [
            (code, (params.alpha * float(query[code]) + share * float(total[code])) / ONE)
            if query[code]
            else (code, share * float(total[code]) / ONE)
            for code in codes
            if code not in banned and (allowed is None or code in allowed)
        ]
        return sorted((s for s in scores if s[1] > 0), key=lambda score: -score[1])[:n]

    def recommend(
        self, query: Vector, leave_out: int, n: int, banned: list[int], allowed: list[int] | None = None
    ) -> list[tuple[int, float]]:
        return self.answers([question_of(query, leave_out, n, banned, allowed)])[0]

    def answers(self, questions: list[Query]) -> list[list[tuple[int, float]]]:
        memory = self.state
        orders = memory.users.order, memory.items.order
        self.space.recommend(QueryBatch(memory.index, questions, memory.params.neighbors, memory.params.alpha, orders))
        return [question.take() for question in questions]

    def neighbors(self, query: Vector, leave_out: int, k: int) -> list[tuple[int, int]]:
        memory = self.state
        codes, squares = self.space.neighbors(memory.index, query, leave_out, k, memory.users.order)
        return sorted(
            zip(squares.tolist(), codes.tolist(), strict=True), key=lambda p: (p[0], memory.users.labels[p[1]])
        )

    def uses_hubs(self, user: Any) -> bool:
        memory, code = self.state, self.code(user)
        k, order = memory.params.neighbors, memory.users.order
        return testing.uses_hubs(self.space, memory.index, self.query(user), code, k, order)

    def check(self, user: Any, n: int = 10, banned: list[int] | None = None) -> None:
        expected = self.best(self.vector(user), user, n, banned or [])
        assert self.recommend(self.query(user), self.code(user), n, banned or []) == expected
        assert self.space.residue() == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 5, 1000])
def test_neighbors_are_the_nearest_by_brute_force(seed: int, k: int) -> None:
    shop = Shop(seed, users=60, k=5)
    for name in shop.names():
        query, code = shop.query(name), shop.code(name)
        assert shop.neighbors(query, code, k) == shop.nearest(shop.vector(name), name, k)
        assert shop.space.residue() == 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 3, 20, 1000])
@pytest.mark.parametrize("alpha", [0.7, 0.0, 1.0])
def test_recommendations_are_those_of_brute_force(seed: int, k: int, alpha: float) -> None:
    shop = Shop(seed, users=40, k=k, alpha=alpha)
    for name in shop.names():
        shop.check(name, n=shop.chance.randint(1, 12))


@pytest.mark.parametrize("seed", range(5))
def test_the_hubs_changes_no_answer(seed: int) -> None:
    shop = Shop(seed, users=40, k=30)
    shop.state.index.rebuild_hubs()
    assert all(shop.uses_hubs(name) for name in shop.names())
    for name in shop.names():
        shop.check(name, n=40)
        shop.check(name, n=3, banned=[0, 3, 4])
    testing.dissolve(shop.state.index)
    assert not any(shop.uses_hubs(name) for name in shop.names())
    for name in shop.names():
        shop.check(name, n=40)
        shop.check(name, n=3, banned=[0, 3, 4])


def test_a_hubs_that_has_changed_since_it_was_chosen() -> None:
    shop = Shop(9, users=40, k=20)
    shop.state.index.rebuild_hubs()
    for name in shop.names()[::3]:
        shop.state.forget(name, None, None)
    for name in shop.names()[::4]:
        shop.state.learn(name, [2, "i3", "another"], "new", None)
    for number in range(10):  # they get the codes of forgotten members
        shop.state.learn(f"new {number}", [number, "another", "i5"], 0, None)
    assert any(shop.uses_hubs(name) for name in shop.names())
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
    query = vector_of([0, 3, 5], [ONE // 2, ONE // 3, 1])
    assert shop.neighbors(query, -1, 7) == shop.nearest(shop.dense(query), None, 7)
    assert shop.recommend(query, -1, 30, [3]) == shop.best(shop.dense(query), None, 30, [3])
    nothing = vector_of([], [])
    assert shop.neighbors(nothing, -1, 3) == shop.nearest(shop.dense(nothing), None, 3)
    assert shop.space.residue() == 0


def test_a_query_in_place_of_a_users_own_vector_leaves_them_out() -> None:
    """Also when it has nothing in common with what is stored of them."""
    shop = Shop(4, users=30, k=4)
    for name in shop.names():
        item = shop.chance.choice(np.flatnonzero(shop.vector(name) == 0).tolist())
        query = vector_of([item], [ONE])
        for k in (1, 10, 100):
            assert shop.neighbors(query, shop.code(name), k) == shop.nearest(shop.dense(query), name, k)
        assert shop.recommend(query, shop.code(name), 30, []) == shop.best(shop.dense(query), name, 30, [])


def test_a_small_user_with_nothing_in_common_can_be_nearer_than_a_large_one_with_much() -> None:
    shop = Shop(0, users=0, k=1)
    learn = shop.state.learn
    learn("asks", ["a"], 0, None)
    learn("large", ["a", "b", "c", "d"], 0, None)
    learn("small", ["z"], 0, None)
    query = shop.query("asks")
    assert shop.neighbors(query, shop.code("asks"), 1) == [(2 * ONE**2, shop.code("small"))]
    assert shop.neighbors(query, shop.code("asks"), 2) == shop.nearest(shop.vector("asks"), "asks", 2)


def test_equally_near_users_are_taken_in_the_order_of_their_ids() -> None:
    shop = Shop(0, users=0, k=1)
    names: list[Any] = ["zoe", 7, "ann", -3, "bob", 40]
    for name in ["asks", *names]:
        shop.state.learn(name, ["x", f"of {name}"], 0, None)
    query, code = shop.query("asks"), shop.code("asks")
    for k in range(1, 8):
        found = [shop.state.users.names[other] for _, other in shop.neighbors(query, code, k)]
        assert found == [-3, 7, 40, "ann", "bob", "zoe"][:k]


def test_alone() -> None:
    shop = Shop(0, users=0, k=3)
    shop.state.learn("u", ["a", "b"], 0, None)
    query = shop.query("u")
    assert shop.neighbors(query, 0, 3) == []
    shop.check("u")
    assert [score for _, score in shop.recommend(query, 0, 5, [])] == [0.7, 0.7]


@pytest.mark.parametrize("with_hubs", [True, False])
def test_only_what_is_allowed_is_offered(with_hubs: bool) -> None:
    """Own items, those of the neighbors and those of the hubs alone; with what is banned, and with nothing left."""
    shop, chance = Shop(6, users=40, k=30), random.Random(6)
    codes = list(shop.state.items.codes.values())
    shop.state.index.rebuild_hubs()
    if not with_hubs:
        testing.dissolve(shop.state.index)
    for name in shop.names():
        assert shop.uses_hubs(name) == with_hubs
        for count in (0, 1, 5, len(codes)):
            allowed, banned = chance.sample(codes, count), chance.sample(codes, 2)
            expected = shop.best(shop.vector(name), name, 7, banned, allowed)
            assert shop.recommend(shop.query(name), shop.code(name), 7, banned, allowed) == expected
            assert shop.space.residue() == 0


def test_an_item_that_is_allowed_twice_is_offered_once() -> None:
    shop = Shop(6, users=40, k=30)
    shop.state.index.rebuild_hubs()
    for name in shop.names():
        expected = shop.best(shop.vector(name), name, 7, [], [3, 5, 8])
        assert shop.recommend(shop.query(name), shop.code(name), 7, [], [5, 3, 3, 8, 5]) == expected
        assert shop.space.residue() == 0


def test_nothing_is_banned_where_no_choice_is_given() -> None:
    shop = Shop(6, users=40, k=30)
    for name in shop.names():
        expected = shop.best(shop.vector(name), name, 7, [])
        assert shop.answers([Query(shop.query(name), shop.code(name), None, 7)]) == [expected]


@pytest.mark.parametrize("count", [0, 2, 3, 32])
def test_many_questions_at_once_have_the_answers_of_one_after_the_other(count: int) -> None:
    shop = Shop(7, users=40, k=8)
    asked: list[tuple[Any, int, list[int], list[int] | None]] = [
        (shop.chance.choice(shop.names()), shop.chance.choice([0, 1, 7, 100]), banned, allowed)
        for banned, allowed in (([], None), ([2, 3], None), ([], [1, 2, 3, 4]), ([], [])) * 8
    ][:count]
    questions = [
        question_of(shop.query(name), shop.code(name), n, banned, allowed) for name, n, banned, allowed in asked
    ]
    expected = [
        shop.best(shop.vector(name), name, n, banned, allowed) if n else [] for name, n, banned, allowed in asked
    ]
    assert shop.answers(questions) == expected
    assert [question.take() for question in questions] == [[]] * count  # they are taken once
    assert shop.space.residue() == 0


def test_neighbors_then_their_sums_then_the_best_is_a_recommendation() -> None:
    """The three steps apart, as they are taken where users are spread over machines; sums may come in shards."""
    shop, n = Shop(9, users=40, k=8), 7
    memory, space = shop.state, SearchWorkspace()
    for name in shop.names():
        query, owner = shop.query(name), shop.code(name)
        codes, _ = shop.space.neighbors(memory.index, query, owner, 8, memory.users.order)
        shards = [shop.space.sum_of(memory.index, shard) for shard in (codes[:3].copy(), codes[3:].copy())]
        items = np.concatenate([shard[0] for shard in shards])
        totals = np.concatenate([shard[1] for shard in shards])
        best = space.best_of(query, items, totals, len(codes), 0.7, memory.items.order, n)
        assert best == shop.recommend(query, owner, n, [])
        assert shop.space.residue() == space.residue() == 0


def test_holders_are_the_parts_of_a_score() -> None:
    shop = Shop(2, users=30, k=6)
    for name in shop.names():
        near = [shop.vector(shop.state.users.names[code]) for _, code in shop.nearest(shop.vector(name), name, 6)]
        items = np.array([*shop.state.items.codes.values(), -1], np.int64)
        order = shop.state.users.order
        *shards, found = shop.space.holders(shop.state.index, shop.query(name), shop.code(name), items, 6, order)
        assert found == len(near)
        for item, *figures in zip(items.tolist(), *(shard.tolist() for shard in shards), strict=True):
            weights = [int(vector[item]) if item >= 0 else 0 for vector in near]
            own = int(shop.vector(name)[item]) if item >= 0 else 0
            assert figures == [own, sum(weights), sum(weight > 0 for weight in weights)]
    assert shop.space.residue() == 0


def test_a_work_space_grows_with_the_items_and_to_the_size_of_a_shard(shard_size: int) -> None:
    shop = Shop(1, users=20, k=5)
    shop.check(shop.names()[0])
    before = shop.space.nearest.scan.room, shop.space.ranking.item_room
    for user in range(100, 200):
        shop.state.learn(user, [f"item {user}", 3], 0, None)
    for name in shop.names():
        shop.check(name)
    assert (shop.space.nearest.scan.room > before[0]) == (shard_size > 20)
    assert shop.space.ranking.item_room > before[1]


def test_work_spaces_are_independent() -> None:
    shop = Shop(1, users=20, k=5)
    name = shop.names()[0]
    first = shop.recommend(shop.query(name), shop.code(name), 5, [])
    shop.space = SearchWorkspace()
    assert shop.recommend(shop.query(name), shop.code(name), 5, []) == first


def test_weights_that_are_zero_are_left_out_of_a_vector() -> None:
    vector = vector_of([4, 1, 3], [7, 0, 9])
    assert (len(vector), vector.items.tolist(), vector.weights.tolist()) == (2, [4, 3], [7, 9])
