"""Targets of the datasets, and scores against them."""

import math

import polars as pl
import pytest

from unbasket.datasets import load
from unbasket.domain.results import Recommendation
from unbasket.params import Params
from unbasket.reproduction.scoring import COUNTED, LAST, UNION, EvaluationData, Recommendations, read, scores


@pytest.mark.usefixtures("data")
def test_instacart_hides_the_last_history_basket() -> None:
    shop, data = load("instacart"), read("instacart")
    assert list(data.targets) == [LAST]
    hidden = data.targets[LAST]
    assert hidden.height + data.history.height == shop.history.height
    assert hidden["user"].n_unique() == hidden.select("user", "basket").n_unique()


def test_repeats_enlarge_the_truth_and_nothing_else() -> None:
    recommended: Recommendations = {1: [Recommendation(7, 0.9), Recommendation(8, 0.8), Recommendation(9, 0.7)]}
    future = pl.DataFrame({"user": 1, "basket": 1, "item": [7, 9], "time": 1, "quantity": [3, 1]})
    data = EvaluationData(future, Params(), {UNION: future, COUNTED: future})
    as_set, counted = (scores(recommended, [1], data, target).row(0, named=True) for target in (UNION, COUNTED))
    assert (as_set["recall@10"], counted["recall@10"]) == (1.0, 2 / 4)
    discounts = [1 / math.log2(rank + 1) for rank in range(1, 5)]
    assert as_set["ndcg_paper@10"] == pytest.approx(discounts[0] / sum(discounts[:2]))
    assert counted["ndcg_paper@10"] == pytest.approx((discounts[0] + discounts[2]) / sum(discounts))
