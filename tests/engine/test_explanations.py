"""Explanations: the shares of the paper's equations, which sum to the score."""

import random

import pytest
from tests.engine.small_shop import BREAD, GROUPINGS, MILK, TEA, params

import unbasket as ub
from unbasket import BasketShare, Explanation


def test_explanations_by_hand(shop: ub.Recommender) -> None:
    own = (BasketShare(1, 10, 0.125), BasketShare(2, 20, 0.25))
    assert shop.explain("ann", "milk") == Explanation("milk", MILK, own, 0.25, 1, 2, 0.75, 0.5, 1.0)
    assert shop.explain("ann", "tea") == Explanation("tea", TEA, (), 0.5, 2, 2, 0.0, 0.5, 1.0)
    assert shop.explain("ann", "bread") == Explanation(
        "bread", BREAD, (BasketShare(1, 10, 0.125),), 0.0, 0, 2, 0.25, 0.5, 1.0
    )
    assert shop.explain("ann", "never seen") == Explanation("never seen", 0.0, (), 0.0, 0, 2, 0.0, 0.5, 1.0)


@pytest.mark.parametrize(
    "params",
    [ub.Params(neighbors=4), *(ub.Params(group_size=3, neighbors=4, grouping=way, alpha=0.8) for way in GROUPINGS)],
    ids=str,
)
def test_shares_sum_to_the_score(params: ub.Params) -> None:
    chance = random.Random(1)
    rec = ub.Recommender(params)
    for user in range(10):
        for basket in range(chance.randint(1, 12)):
            rec.learn(user, chance.sample(range(15), chance.randint(1, 5)), basket=basket)
        rec.forget(user, basket=1)
    for user in range(10):
        scores = dict(rec.recommend(user, 100))
        near = [dict(rec.vector(other)) for other, _ in rec.similar_users(user, 4)]
        explained = rec.explain_many(user, [*rec.items(), 10**9])
        assert explained == [rec.explain(user, item) for item in [*rec.items(), 10**9]]
        for item in rec.items():
            why = rec.explain(user, item)
            assert abs(sum(share for _, _, share in why.baskets) + why.neighbors_share - why.score) < 1e-12
            assert why.score == pytest.approx(scores.get(item, 0.0), abs=1e-12)
            own = why.weight * why.alpha * why.factor
            assert own == pytest.approx(sum(share for _, _, share in why.baskets), abs=1e-12)
            holding = [basket.basket for basket in rec.history(user) if item in basket.items]
            assert [basket for basket, _, _ in why.baskets] == holding
            assert (why.neighbors_with_item, why.neighbors) == (sum(item in vector for vector in near), 4)


def test_shares_follow_the_equations() -> None:
    """Groups {x} {x} | {x}; level of x: 1/2 * (1/2)/2, 1/2 * 1/2, 1; over K = 2, times alpha = 1/2."""
    rec = ub.Recommender(params())
    for basket in range(3):
        rec.learn("u", ["x"], basket=basket)
    assert [share for _, _, share in rec.explain("u", "x").baskets] == [0.03125, 0.0625, 0.25]
