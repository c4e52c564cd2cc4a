"""The privacy threshold in every query: against the oracle, and against one who looks for a single person."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.oracle import Oracle

import unbasket as ub
from unbasket.domain.ids import Id

THRESHOLD = ub.PrivacyThreshold(buyers=4, neighbors=3)
Baskets = list[list[Id]]


def random_shop(seed: int, params: ub.Params) -> tuple[ub.Recommender, Oracle]:
    """Return an engine and an oracle with the same random baskets; some items are rare."""
    chance, rec, oracle = random.Random(seed), ub.Recommender(params), Oracle(params)
    for user in range(25):
        for basket in range(chance.randint(1, 4)):
            items: list[Id] = [int(chance.expovariate(0.25)) for _ in range(chance.randint(1, 4))]
            for model in (rec, oracle):
                model.learn(user, items, basket=basket)
    return rec, oracle


def is_clear(oracle: Oracle, user: Id, other: Oracle) -> bool:
    """Return whether a different rounding of distances would find the same neighbors."""
    wider = Oracle(oracle.params.changed(neighbors=oracle.params.neighbors + 1))
    wider._histories = oracle._histories
    part = {
        item: weight
        for item, weight in oracle.vector(user).items()
        if sum(item in other.vector(each) for each in other.pool()) >= THRESHOLD.buyers
    }
    near = wider.nearest(user, part)
    gaps = [
        sum((part.get(item, 0.0) - vector.get(item, 0.0)) ** 2 for item in part.keys() | vector.keys())
        for vector in map(oracle.vector, near[-2:])
    ]
    return abs(gaps[0] - gaps[1]) > 1e-5


MODELS: dict[str, dict[str, Any]] = {
    "fixed": {"group_size": 2, "alpha": 0.6},
    "varying": {"group_size": 2, "alpha": 0.6, "grouping": "varying"},
    "learned": {"alpha": "learned"},
}


@pytest.mark.parametrize("pool", [None, 18])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(4))
def test_the_engine_equals_the_oracle(seed: int, model: str, pool: int | None) -> None:
    params = ub.Params(neighbors=7, pool=pool, pool_seed=pool and 5, **MODELS[model])
    rec, oracle = random_shop(seed, params)
    chance, checked, hidden = random.Random(seed), 0, 0
    for user in oracle.users():
        cart: list[Id] = chance.sample(range(12), 2)
        carted = oracle.with_cart(user, cart)
        history = [basket.items for basket in rec.history(user)]
        if not (is_clear(oracle, user, oracle) and is_clear(carted, user, oracle)):
            continue
        expected = shown(oracle.private_prediction(user, THRESHOLD, oracle), [])
        found = dict(rec.recommend(user, 100, privacy=THRESHOLD))
        assert found == pytest.approx(
            expected, abs=0.01001
        )  # a score may be rounded up from either side of a hundredth
        assert dict(rec.recommend_many([user], 100, privacy=THRESHOLD)[user]) == found
        if model != "varying":
            assert dict(rec.recommend_for(history, 100, user=user, privacy=THRESHOLD)) == found
        for item in rec.items():
            assert rec.explain(user, item, privacy=THRESHOLD).score == pytest.approx(found.get(item, 0.0), abs=0.01001)
        with_cart = dict(rec.recommend(user, 100, cart=cart, privacy=THRESHOLD))
        assert with_cart == pytest.approx(shown(carted.private_prediction(user, THRESHOLD, oracle), cart), abs=0.01001)
        checked, hidden = checked + 1, hidden + len(rec.recommend(user, 100)) - len(found)
    assert checked > 5
    assert hidden > 0


def shown(prediction: dict[Id, float], cart: list[Id]) -> dict[Id, float]:
    return {item: THRESHOLD.score(score) for item, score in prediction.items() if item not in cart and score > 1e-6}


def test_exact_scores_decide_the_order() -> None:
    rec, _ = random_shop(1, ub.Params(neighbors=30))
    lowest = ub.PrivacyThreshold(buyers=1, neighbors=1)
    for user in rec.users():
        exact, found = rec.recommend(user, 100), rec.recommend(user, 100, privacy=lowest)
        assert found == [(item, lowest.score(score)) for item, score in exact]


def test_popular_items_of_few_baskets_are_left_out() -> None:
    rec = ub.Recommender()
    for user in range(25):
        rec.learn(user, ["milk", *(["tea"] if user < 10 else []), *(["gin"] if user < 9 else [])], basket=1, time=user)
    privacy = ub.PrivacyThreshold()
    assert rec.popular(privacy=privacy) == [("milk", 20), ("tea", 10)]
    assert rec.popular(since=9, privacy=privacy) == [("milk", 10)]
    assert rec.popular(only=["gin"], privacy=privacy) == []


# One person, and an attacker who knows an item that only they bought -----------------------------------------------


@pytest.fixture
def shop() -> ub.Recommender:
    """Return a shop of 30 people with everyday baskets, and ann, who alone buys cigars, rum and cards."""
    rec, chance = ub.Recommender(ub.Params(neighbors=8)), random.Random(0)
    for user in range(30):
        for basket in range(2):
            rec.learn(f"user {user}", chance.sample(["milk", "bread", "tea", "eggs", "rice"], 3), basket=basket)
    for basket in range(2):
        rec.learn("ann", ["cigars", "rum", "cards"], basket=basket)
    return rec


ATTACKS: dict[str, Callable[[ub.Recommender, Id, ub.PrivacyThreshold | None], list[ub.Recommendation]]] = {
    "cart": lambda rec, item, privacy: rec.recommend("new", 100, cart=[item], privacy=privacy),
    "visitor": lambda rec, item, privacy: rec.recommend_for([[item]], 100, only_new=True, privacy=privacy),
    "beside": lambda rec, item, privacy: rec.recommend_for(
        [["own thing"], [item]], 100, exclude=[item], privacy=privacy
    ),
    "only": lambda rec, item, privacy: rec.recommend_for([[item]], 100, only=["rum", "cards"], privacy=privacy),
    "customer": lambda rec, item, privacy: rec.recommend("eve", 100, cart=[item], privacy=privacy),
    "own history": lambda rec, item, privacy: bought(rec, item, privacy),
}


def bought(rec: ub.Recommender, item: Id, privacy: ub.PrivacyThreshold | None) -> list[ub.Recommendation]:
    """Return the recommendations to an attacker who buys the item."""
    rec.learn("eve", [item], basket=2)
    try:
        return rec.recommend("eve", 100, exclude=[item], privacy=privacy)
    finally:
        rec.forget("eve", basket=2)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_unique_item_tells_nothing(shop: ub.Recommender, name: str) -> None:
    shop.learn("eve", ["own thing"], basket=1)
    attack, privacy = ATTACKS[name], ub.PrivacyThreshold(buyers=10, neighbors=5)
    assert {"rum", "cards"} <= dict(attack(shop, "cigars", None)).keys()  # the attack works without a threshold
    assert not {"rum", "cards"} & dict(attack(shop, "no such item", None)).keys()
    assert attack(shop, "cigars", privacy) == attack(shop, "no such item", privacy)


def test_explanations_of_a_unique_item(shop: ub.Recommender) -> None:
    shop.learn("eve", ["cigars"], basket=1)
    privacy = ub.PrivacyThreshold(buyers=10, neighbors=5)
    assert shop.explain("eve", "rum").neighbors_with_item == 1
    why = shop.explain("eve", "rum", privacy=privacy)
    assert (why.score, why.neighbors_share, why.neighbors_with_item, why.neighbors) == (0.0, 0.0, 0, 0)
    own = shop.explain("eve", "cigars", privacy=privacy)
    assert own.neighbors_share == 0.0
    assert own.score == THRESHOLD.score(own.alpha)


@pytest.mark.parametrize("buyers", [9, 10])
def test_the_factor_of_an_item_needs_buyers(shop: ub.Recommender, buyers: int) -> None:
    """The others buy gin again and again: eve, who bought it once, sees that if they are enough."""
    for user in range(buyers - 1):
        for basket in range(2, 6):
            shop.learn(f"user {user}", ["gin"], basket=basket)
    shop.learn("eve", ["gin"], basket=1)
    privacy = ub.PrivacyThreshold(buyers=10, neighbors=50)
    exact, why = shop.explain("eve", "gin"), shop.explain("eve", "gin", privacy=privacy)
    assert exact.factor > 1.2
    assert why.factor == (exact.factor if buyers == 10 else 1)
    assert why.score == privacy.score(why.alpha * why.weight * why.factor)
    for caller in ("eve", None):
        assert shop.recommend_for([["gin"]], user=caller, privacy=privacy) == [("gin", why.score)]
    assert shop.recommend("eve", privacy=privacy) == [("gin", why.score)]
