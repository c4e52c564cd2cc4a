"""Update methods: the baselines compute the engine's vector."""

import numpy as np
import polars as pl
import pytest

from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError
from unbasket.params import Params
from unbasket.reproduction.baselines import USER, DenseRetrain, Engine, PaperRules, _FromNewest

PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7, alpha=0.8)
BASKETS = [[0, 1], [1], [2, 3], [0], [3], [1, 2], [0, 3], [2]]


def test_retrain_equals_the_engines_vector() -> None:
    method, engine = DenseRetrain(PARAMS, 4, len(BASKETS)), Recommender(PARAMS)
    method.load(BASKETS)
    for number, basket in enumerate(BASKETS):
        engine.learn("u", basket, basket=number)
    for position in (2, 0, 4):  # of the remaining baskets: baskets 2, 0 and 6
        method.delete(position)
    for number in (2, 0, 6):
        engine.forget("u", basket=number)
    expected = [engine.vector("u").get(item, 0.0) for item in range(4)]
    assert method.vector == pytest.approx(np.array(expected), abs=1e-14)


def test_papers_rules_add_as_a_retrain_does() -> None:
    retrain, rules = DenseRetrain(PARAMS, 4, len(BASKETS)), PaperRules(PARAMS, 4)
    for basket in BASKETS:
        assert retrain.add(basket) > 0
        assert rules.add(basket) > 0
    assert rules._user.vector == pytest.approx(retrain.vector)
    rules.delete(len(BASKETS) - 1)
    retrain.delete(len(BASKETS) - 1)
    assert rules._user.vector == pytest.approx(retrain.vector)


def test_positions_from_the_newest_equal_those_from_the_oldest() -> None:
    user = _FromNewest(3, 0.9, 0.7, 4)
    for basket in BASKETS:
        user.add_basket(basket)
    count = len(BASKETS)
    found = [user._locate(position - count) for position in range(count)]
    assert found == [super(_FromNewest, user)._locate(position) for position in range(count)]
    with pytest.raises(InvalidRequestError, match="before the oldest"):
        user._locate(-count - 1)


def test_engine_deletes_the_basket_at_the_position() -> None:
    method = Engine(PARAMS, pl.DataFrame(), recommend=True)
    method.load(BASKETS)
    method.delete(2)
    method.delete(2)
    assert [list(basket.items) for basket in method._engine.history(USER)] == BASKETS[:2] + BASKETS[4:]
