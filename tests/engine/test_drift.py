"""A scenario: after a thousand deletions the engine has not drifted; the paper's rule explodes (section 6.3)."""

import random

import pytest

from unbasket import Params, Recommender
from unbasket.evaluation.paper_rules import PaperUser

BASKETS = 1000
PARAMS = Params(group_size=2, basket_decay=0.9, group_decay=0.7, neighbors=1, alpha=0.8)


@pytest.mark.parametrize("order", ["start", "end", "random"])
@pytest.mark.parametrize("grouping", ["fixed", "varying", "count"])
def test_error_is_exactly_zero(order: str, grouping: str) -> None:
    params = Params(**{**{name: getattr(PARAMS, name) for name in PARAMS.__slots__}, "grouping": grouping})
    rec = Recommender(params)
    for number in range(BASKETS):
        rec.learn("u", ["item"], basket=number, time=number)
    left = list(range(BASKETS))
    if order == "random":
        random.Random(0).shuffle(left)
    for step in range(BASKETS - 1):
        rec.forget("u", basket=left.pop(0 if order == "start" else -1))
        if step % 37 == 0 or len(left) < 4:
            assert rec.verify("u").ok
            retrained = Recommender(params)
            if grouping != "varying":
                for number in sorted(left):
                    retrained.learn("u", ["item"], basket=number, time=number)
                assert rec.vector("u") == retrained.vector("u")
                assert rec.digest() == retrained.digest()
    rec.forget("u", basket=left.pop())
    assert "u" not in rec


def test_the_papers_rule_drifts_away() -> None:
    """The same deletions by the paper's rule, from the end: 1 % after about 180, and no end to it."""
    user = PaperUser(PARAMS.group_size, PARAMS.basket_decay, PARAMS.group_decay, 1)
    for _ in range(BASKETS):
        user.add_basket([0])
    first, worst = 0, 0.0
    for step in range(1, 400):
        user.delete_basket(BASKETS - step)
        truth = user.retrained()[0]
        error = abs(user.vector[0] - truth) / truth
        if error > 0.01 and not first:
            first = step
        worst = max(worst, error)
    assert 150 < first < 220
    assert worst > 1e6
