import math

import polars as pl
import pytest

from unbasket.errors import InvalidFrameError, InvalidRequestError
from unbasket.evaluation.baselines import gp_topfreq
from unbasket.evaluation.scores import score_users
from unbasket.evaluation.splits import Holdout, all_users_split


def purchases(baskets: dict[str, list[str]]) -> pl.DataFrame:
    rows = [(user, "b", item) for user, items in baskets.items() for item in items]
    return pl.DataFrame(rows, schema=dict.fromkeys(["user", "basket", "item"], pl.String), orient="row")


def ranked(lists: dict[str, list[str]]) -> pl.DataFrame:
    users = pl.Series("user", list(lists), dtype=pl.String)
    return pl.DataFrame([users, pl.Series("items", list(lists.values()), dtype=pl.List(pl.String))])


RANKINGS = ranked({"zoe": ["tea", "milk", "rye"], "bob": [], "ann": ["milk"]})
HISTORY = purchases({"zoe": ["milk", "soap"], "ann": ["milk"], "bob": ["tea"]})
FUTURE = purchases({"ann": ["milk"], "bob": ["rye"], "zoe": ["milk", "jam", "tea"], "eve": ["tea"]})


def test_scores_by_hand() -> None:
    scores = score_users(RANKINGS, HISTORY, FUTURE, cutoffs=[1, 2])
    assert scores["user"].to_list() == ["zoe", "bob", "ann"]
    assert scores["recall@1"].to_list() == pytest.approx([1 / 3, 0, 1])
    assert scores["recall@2"].to_list() == pytest.approx([2 / 3, 0, 1])
    assert scores["precision@2"].to_list() == [1, 0, 0.5]
    assert scores["hit_rate@2"].to_list() == [1, 0, 1]
    assert scores["ndcg_paper@2"].to_list() == [1, 0, 1]
    assert scores["ndcg_standard@2"].to_list() == [1, 0, 1]
    both = 1 + 1 / math.log2(3)
    assert scores["ndcg_hu@2"].to_list() == pytest.approx([both / (both + 0.5), 0, 1])


def test_repeats_and_exploration_by_hand() -> None:
    scores = score_users(RANKINGS, HISTORY, FUTURE, cutoffs=[2])
    assert scores["repeat_recall@2"].to_list() == [1, None, 1]
    assert scores["explore_recall@2"].to_list() == [0.5, 0, None]
    assert scores["repeat_ndcg_standard@2"].to_list() == pytest.approx([1 / math.log2(3), None, 1])
    assert scores["repeat_ndcg_paper@2"].to_list() == [0, None, 1]


def test_columns() -> None:
    names = ["recall", "precision", "hit_rate", "ndcg_paper", "ndcg_hu", "ndcg_standard"]
    expected = [f"{prefix}{name}@{n}" for prefix in ("", "repeat_", "explore_") for n in (10, 20) for name in names]
    assert score_users(RANKINGS, HISTORY, FUTURE).columns == ["user", *expected]


def test_a_user_without_a_future_has_no_score() -> None:
    scores = score_users(ranked({"ann": ["milk"], "kim": ["milk"]}), HISTORY, FUTURE, cutoffs=[1])
    assert scores["recall@1"].to_list() == [1, None]
    assert scores["recall@1"].mean() == 1


def test_ids_may_be_of_different_widths() -> None:
    future = pl.DataFrame({"user": [1, 2], "item": [5, 6]}, schema={"user": pl.Int32, "item": pl.Int16})
    rankings = pl.DataFrame({"user": [2, 1], "items": [[6], [6]]})
    assert score_users(rankings, future, future, cutoffs=[1])["recall@1"].to_list() == [1, 0]


def test_an_empty_ranking_table() -> None:
    assert score_users(ranked({}), HISTORY, FUTURE).shape == (0, 37)


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidFrameError, match="once"):
        score_users(pl.concat([RANKINGS, RANKINGS]), HISTORY, FUTURE)
    with pytest.raises(InvalidRequestError, match=r"\[0\]"):
        score_users(RANKINGS, HISTORY, FUTURE, cutoffs=[0])
    with pytest.raises(InvalidRequestError, match="twice"):
        score_users(ranked({"ann": ["milk", "milk"]}), HISTORY, FUTURE)


def test_repeat_share_of_tafeng(tafeng: Holdout) -> None:
    """16.6 % of the future's items are repeats (README of the data); the three means must agree with it."""
    rankings = gp_topfreq(tafeng.history, all_users_split(*tafeng), 20)
    scores = score_users(rankings, *tafeng)
    own = tafeng.history.select("user", "item").unique()
    repeats = tafeng.future.join(own, on=["user", "item"], how="semi")
    assert len(repeats) / len(tafeng.future) == pytest.approx(0.166, abs=0.0005)
    assert scores["repeat_recall@20"].count() == repeats["user"].n_unique()
    sums = scores.select(pl.sum("precision@20", "repeat_precision@20", "explore_precision@20")).row(0)
    assert sums[0] == pytest.approx(sums[1] + sums[2])
    assert scores["recall@10"].mean() == pytest.approx(0.1346, abs=0.0001)
