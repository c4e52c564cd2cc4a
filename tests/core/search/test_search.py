"""Queries against brute force: batches, queries without a user, and the steps of a recommendation apart."""

from typing import Any

import numpy as np
import pytest
from tests.core.search.brute_force import Shop, query_of, vector_of

from unbasket.core.check import testing
from unbasket.core.model import ONE
from unbasket.core.search import SearchWorkspace

pytestmark = pytest.mark.usefixtures("shard_size")


def test_a_query_without_a_user() -> None:
    shop = Shop(4, users=30, k=4)
    query = vector_of([0, 3, 5], [ONE // 2, ONE // 3, 1])
    assert shop.neighbors(query, -1, 7) == shop.nearest(shop.dense(query), None, 7)
    assert shop.recommend(query, -1, 30, [3]) == shop.best(shop.dense(query), None, 30, [3])
    nothing = vector_of([], [])
    assert shop.neighbors(nothing, -1, 3) == shop.nearest(shop.dense(nothing), None, 3)
    assert shop.space.residue() == 0


def test_a_query_in_place_of_a_users_vector_leaves_the_user_out() -> None:
    """Also if the query has no item in common with the stored vector."""
    shop = Shop(4, users=30, k=4)
    for name in shop.names():
        item = shop.chance.choice(np.flatnonzero(shop.vector(name) == 0).tolist())
        query = vector_of([item], [ONE])
        for k in (1, 10, 100):
            assert shop.neighbors(query, shop.code(name), k) == shop.nearest(shop.dense(query), name, k)
        assert shop.recommend(query, shop.code(name), 30, []) == shop.best(shop.dense(query), name, 30, [])


@pytest.mark.parametrize("count", [0, 2, 3, 32])
def test_a_batch_has_the_answers_of_single_queries(count: int) -> None:
    shop = Shop(7, users=40, k=8)
    asked: list[tuple[Any, int, list[int], list[int] | None]] = [
        (shop.chance.choice(shop.names()), shop.chance.choice([0, 1, 7, 100]), banned, allowed)
        for banned, allowed in (([], None), ([2, 3], None), ([], [1, 2, 3, 4]), ([], [])) * 8
    ][:count]
    queries = [query_of(shop.query(name), shop.code(name), n, banned, allowed) for name, n, banned, allowed in asked]
    expected = [
        shop.best(shop.vector(name), name, n, banned, allowed) if n else [] for name, n, banned, allowed in asked
    ]
    assert shop.answers(queries) == expected
    assert [query.take() for query in queries] == [[]] * count  # a result is taken once
    assert shop.space.residue() == 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("least", [0, 1, 2, 3, 5, 9])
def test_items_of_few_neighbors_count_as_of_none(seed: int, least: int) -> None:
    """Also of hubs, whose sums do not tell how many have an item. Neighbors are found by a part of the vector."""
    shop = Shop(seed, users=60, k=8)
    items = range(len(shop.state.items.names))
    assert any(shop.uses_hubs(name) for name in shop.names())
    for name in shop.names():
        query, owner = shop.query(name), shop.code(name)
        kept = np.array([shop.chance.random() < 0.5 for _ in query.items], np.bool_)
        probe = vector_of(query.items[kept].tolist(), query.weights[kept].tolist())
        banned, allowed = shop.chance.sample(items, 2), shop.chance.sample(items, 12)
        for choice in (None, allowed):
            [found] = shop.answers([query_of(query, owner, 10, banned, choice, probe, least)])
            assert found == shop.best(shop.vector(name), name, 10, banned, choice, shop.dense(probe), least)
        assert shop.space.residue() == 0


def test_holders_are_the_parts_of_a_score() -> None:
    shop = Shop(2, users=30, k=6)
    for name in shop.names():
        near = [shop.vector(shop.state.users.names[code]) for _, code in shop.nearest(shop.vector(name), name, 6)]
        items = np.array([*shop.state.items.codes.values(), -1], np.int64)
        order = shop.state.users.order
        query, user = shop.query(name), shop.code(name)
        *shards, found = shop.space.holders(shop.state.index, query, query, user, items, 6, order)
        assert found == len(near)
        for item, *figures in zip(items.tolist(), *(shard.tolist() for shard in shards), strict=True):
            weights = [int(vector[item]) if item >= 0 else 0 for vector in near]
            own = int(shop.vector(name)[item]) if item >= 0 else 0
            assert figures == [own, sum(weights), sum(weight > 0 for weight in weights)]
    assert shop.space.residue() == 0


def test_a_workspace_grows_with_the_items_and_to_the_size_of_a_shard(shard_size: int) -> None:
    shop = Shop(1, users=20, k=5)
    shop.check(shop.names()[0])
    before = testing.room(shop.space)
    for user in range(100, 200):
        shop.state.learn(user, [f"item {user}", 3], 0, None)
    for name in shop.names():
        shop.check(name)
    after = testing.room(shop.space)
    assert (after[0] > before[0]) == (shard_size > 20)
    assert after[1] > before[1]


def test_workspaces_are_independent() -> None:
    shop = Shop(1, users=20, k=5)
    name = shop.names()[0]
    first = shop.recommend(shop.query(name), shop.code(name), 5, [])
    shop.space = SearchWorkspace()
    assert shop.recommend(shop.query(name), shop.code(name), 5, []) == first


def test_a_vector_drops_zero_weights() -> None:
    vector = vector_of([4, 1, 3], [7, 0, 9])
    assert (len(vector), vector.items.tolist(), vector.weights.tolist()) == (2, [4, 3], [7, 9])
