"""The dense reference: it equals the engine without repeated items, and differs with them."""

import polars as pl
import pytest

from unbasket.datasets import load
from unbasket.engine.recommender import Recommender
from unbasket.evaluation import all_users_split
from unbasket.params import Params
from unbasket.reproduction import counts
from unbasket.reproduction.scoring import recommend_all
from unbasket.reproduction.workloads import Settings

pytestmark = pytest.mark.usefixtures("data")
PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7, neighbors=5, alpha=0.6)


def quiet(*_: object) -> None:
    """Ignore progress."""


def test_without_repeats_it_equals_the_engine() -> None:
    history = load("tafeng").history.with_columns(quantity=1)
    dense = counts.recommend_dense(history, PARAMS, quiet)
    engine = recommend_all(Recommender(PARAMS).fit(history), all_users_split(history, history), quiet)
    assert dense.keys() == engine.keys()
    for user, expected in engine.items():
        assert [score for _, score in dense[user]][: len(expected)] == pytest.approx(
            [score for _, score in expected], abs=1e-6
        )


def test_an_item_counts_as_often_as_it_is_listed() -> None:
    history = pl.DataFrame({"user": [1, 1, 2], "basket": 1, "time": 1, "item": [5, 6, 7], "quantity": [1, 3, 1]})
    recommended = counts.recommend_dense(history, PARAMS, quiet)[1]
    assert [item for item, _ in recommended] == [6, 5, 7]
    assert [score for _, score in recommended] == pytest.approx([0.6 * 3, 0.6, 0.4])


def test_rows_compare_both_with_the_paper() -> None:
    frame = pl.DataFrame(counts.run("valuedshopper", Settings(), quiet))
    assert frame["baskets"].unique(maintain_order=True).to_list() == ["sets (the engine)", "counts (dense NumPy)"]
    assert frame["paper"].to_list() == [0.1436, 0.4058, 0.2133, 0.3465] * 2
    assert frame["difference"].to_list() == pytest.approx((frame["ours"] - frame["paper"]).to_list())
    section = counts.present(frame)
    assert len(section.tables[0].rows) == 8
    assert section.findings[0].holds is False  # a small shop has other figures than the paper
    counted = pl.col("baskets") == "counts (dense NumPy)"
    near = frame.with_columns(difference=pl.when(counted).then(0.00004).otherwise(1.0))
    assert counts.present(near).findings[0].holds is True
