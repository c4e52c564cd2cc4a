"""The best items against brute force: the same scores, bit for bit."""

import random
from typing import Literal

import pytest
from tests.core.search.brute_force import ITEMS, Shop

from unbasket.core.check import testing
from unbasket.core.search import Query

pytestmark = pytest.mark.usefixtures("shard_size")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 3, 20, 1000])
@pytest.mark.parametrize("alpha", [0.7, 0.0, 1.0, "learned"])
def test_recommendations_are_those_of_brute_force(seed: int, k: int, alpha: float | Literal["learned"]) -> None:
    shop = Shop(seed, users=40, k=k, alpha=alpha)
    for name in shop.names():
        shop.check(name, n=shop.chance.randint(1, 12))


@pytest.mark.parametrize("seed", range(10))
def test_bounds_are_exact_with_learned_weights(seed: int) -> None:
    """Hubs, factors far from 1, and few items to return: most items are skipped by their bounds."""
    shop = Shop(seed, users=60, k=25, alpha="learned")
    assert shop.state.sums is not None
    sums = testing.learned(shop.state.sums)["items"]
    sums["weight"] //= shop.chance.choice([1, 4, 1000])
    sums["buyers"][::3] = 1
    for basket in range(40):  # a long history has a large scale
        shop.state.learn("long", [basket % 7, f"i{basket % 5}"], basket, None)
    shop.state.index.rebuild_hubs()
    assert any(shop.uses_hubs(name) for name in shop.names())
    for name in shop.names():
        for n in (1, 2, 5, 40):
            shop.check(name, n)
        shop.check(name, 3, banned=[0, 3, 4])
        shop.check_allowed(name, 2, [1], shop.chance.choices(range(ITEMS), k=10))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.7, "learned"])
def test_hubs_change_no_answer(seed: int, alpha: float | Literal["learned"]) -> None:
    shop = Shop(seed, users=40, k=30, alpha=alpha)
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


def test_hubs_may_change_after_they_were_chosen() -> None:
    shop = Shop(9, users=40, k=20)
    shop.state.index.rebuild_hubs()
    for name in shop.names()[::3]:
        shop.state.forget(name, None, None)
    for name in shop.names()[::4]:
        shop.state.learn(name, [2, "i3", "another"], "new", None)
    for number in range(10):  # they get the codes of forgotten hubs
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


def test_a_single_user() -> None:
    shop = Shop(0, users=0, k=3)
    shop.state.learn("u", ["a", "b"], 0, None)
    query = shop.query("u")
    assert shop.neighbors(query, 0, 3) == []
    shop.check("u")
    assert [score for _, score in shop.recommend(query, 0, 5, [])] == [0.7, 0.7]


@pytest.mark.parametrize("with_hubs", [True, False])
def test_only_allowed_items_are_recommended(with_hubs: bool) -> None:
    """Own items, items of neighbors and items that only hubs have; with banned items, and with nothing left."""
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


def test_an_item_that_is_allowed_twice_is_recommended_once() -> None:
    shop = Shop(6, users=40, k=30)
    shop.state.index.rebuild_hubs()
    for name in shop.names():
        expected = shop.best(shop.vector(name), name, 7, [], [3, 5, 8])
        assert shop.recommend(shop.query(name), shop.code(name), 7, [], [5, 3, 3, 8, 5]) == expected
        assert shop.space.residue() == 0


def test_without_a_choice_nothing_is_banned() -> None:
    shop = Shop(6, users=40, k=30)
    for name in shop.names():
        expected = shop.best(shop.vector(name), name, 7, [])
        assert shop.answers([Query(shop.query(name), shop.code(name), None, 7)]) == [expected]
