"""The nearest neighbors against brute force: the same users at the same distances."""

from typing import Any

import pytest
from tests.core.search.brute_force import Shop

from unbasket.core.model import ONE

pytestmark = pytest.mark.usefixtures("shard_size")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 5, 1000])
def test_neighbors_are_the_nearest_by_brute_force(seed: int, k: int) -> None:
    shop = Shop(seed, users=60, k=5)
    for name in shop.names():
        query, code = shop.query(name), shop.code(name)
        assert shop.neighbors(query, code, k) == shop.nearest(shop.vector(name), name, k)
        assert shop.space.residue() == 0


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
