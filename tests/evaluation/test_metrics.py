"""Metrics and scores against values worked out by hand."""

import math
import time
from typing import cast

import numpy as np
import polars as pl
import pytest

from unbasket.errors import InvalidFrameError, InvalidRequestError
from unbasket.evaluation._item_sets import ItemSets
from unbasket.evaluation.baselines import gp_topfreq
from unbasket.evaluation.metrics import Hits, NdcgForm, find_hits, hit_rate, ndcg, precision, recall, score_users
from unbasket.evaluation.protocols import Holdout, all_users_split


def one_user(predictions: list[int], truth: list[int]) -> Hits:
    return find_hits(np.array([predictions]), ItemSets.from_lists([truth]))


@pytest.fixture
def worked_example() -> Hits:
    """Three truth items, hits at ranks 1 and 6 of 10."""
    return one_user([1, 50, 51, 52, 53, 2, 54, 55, 56, 57], [1, 2, 3])


@pytest.mark.parametrize(("form", "value"), [("paper", 0.469), ("hu", 0.636), ("standard", 0.636)])
def test_ndcg_of_the_worked_example(worked_example: Hits, form: NdcgForm, value: float) -> None:
    assert ndcg(worked_example, 10, form)[0] == pytest.approx(value, abs=0.0005)


def test_other_metrics_of_the_worked_example(worked_example: Hits) -> None:
    assert recall(worked_example, 10) == pytest.approx([2 / 3])
    assert recall(worked_example, 5) == pytest.approx([1 / 3])
    assert precision(worked_example, 10) == pytest.approx([0.2])
    assert precision(worked_example, 5) == pytest.approx([0.2])
    assert hit_rate(worked_example, 10).tolist() == [1.0]


def test_ndcg_of_a_truth_larger_than_n() -> None:
    """Two ranks, four truth items, both ranks hit: only Hu's form stays below 1."""
    hits = one_user([1, 2], [1, 2, 3, 4])
    first_two = 1 + 1 / math.log2(3)
    all_four = first_two + 1 / math.log2(4) + 1 / math.log2(5)
    assert ndcg(hits, 2, "paper") == pytest.approx([1.0])
    assert ndcg(hits, 2, "standard") == pytest.approx([1.0])
    assert ndcg(hits, 2, "hu") == pytest.approx([first_two / all_four])


def test_ndcg_of_a_hit_beyond_the_size_of_the_truth() -> None:
    """One truth item, found at rank 2: worth nothing to the paper."""
    hits = one_user([8, 1], [1])
    assert ndcg(hits, 2, "paper").tolist() == [0.0]
    assert ndcg(hits, 2, "standard") == pytest.approx([1 / math.log2(3)])
    assert ndcg(hits, 2, "hu") == pytest.approx([1 / math.log2(3)])


def test_users_do_not_mix() -> None:
    """Each user is offered the other's truth, and item codes border on the next user's."""
    hits = find_hits(np.array([[0, 9], [9, 0]]), ItemSets.from_lists([[9], [0]]))
    assert hits.found.tolist() == [[False, True], [False, True]]
    hits = find_hits(np.array([[10, 1], [-1, 1]]), ItemSets.from_lists([[9], [0, 9]]))
    assert not hits.found.any()


def test_missing_predictions_are_misses() -> None:
    hits = one_user([3, -1, -1, -1], [3, 4])
    assert recall(hits, 4).tolist() == [0.5]
    assert precision(hits, 4).tolist() == [0.25]
    nothing = one_user([-1, -1], [3])
    assert hit_rate(nothing, 2).tolist() == [0.0]
    assert ndcg(nothing, 2, "standard").tolist() == [0.0]


def test_repeats_and_exploration() -> None:
    predictions = np.array([[1, 2, 3, 4], [1, 2, 3, 4]])
    truth = ItemSets.from_lists([[1, 4, 7], [2]])
    history = ItemSets.from_lists([[1, 7, 8], [3]])
    repeat = find_hits(predictions, truth.intersection(history))
    explore = find_hits(predictions, truth.difference(history))
    # First user: 1 and 7 are repeats, of which 1 is found; 4 is new, found at rank 4. Second user: 2 is new.
    assert recall(repeat, 4)[0] == 0.5
    assert recall(explore, 4).tolist() == [1.0, 1.0]
    assert ndcg(explore, 4, "standard") == pytest.approx([1 / math.log2(5), 1 / math.log2(3)])
    for values in (
        recall(repeat, 4),
        precision(repeat, 4),
        hit_rate(repeat, 4),
        ndcg(repeat, 4, "paper"),
        ndcg(repeat, 4, "hu"),
        ndcg(repeat, 4, "standard"),
    ):
        assert not math.isnan(values[0])
        assert math.isnan(values[1])
    assert np.nanmean(recall(repeat, 4)) == 0.5


def test_no_users() -> None:
    hits = find_hits(np.empty((0, 3), dtype=np.int64), ItemSets.from_lists([]))
    assert recall(hits, 3).shape == ndcg(hits, 3, "hu").shape == (0,)


@pytest.mark.parametrize("n", [0, -1, 3])
def test_n_must_be_covered_by_the_predictions(n: int) -> None:
    hits = one_user([1, 2], [1])
    for metric in (recall, precision, hit_rate):
        with pytest.raises(InvalidRequestError, match=f"from 1 to 2.* not {n}"):
            metric(hits, n)
    with pytest.raises(InvalidRequestError, match=f"from 1 to 2.* not {n}"):
        ndcg(hits, n, "paper")


def test_unknown_ndcg_form() -> None:
    with pytest.raises(InvalidRequestError, match="'caboose'"):
        ndcg(one_user([1], [1]), 1, cast(NdcgForm, "caboose"))


def test_predictions_that_do_not_fit() -> None:
    with pytest.raises(InvalidRequestError, match=r"2 users.*\(1, 2\)"):
        find_hits(np.array([[1, 2]]), ItemSets.from_lists([[1], [2]]))
    with pytest.raises(InvalidRequestError, match="item 7 is predicted twice in row 1"):
        find_hits(np.array([[1, -1, -1], [7, 3, 7]]), ItemSets.from_lists([[1], [2]]))


def test_no_loop_over_users() -> None:
    """14,000 users take about 15 ms of CPU; the bound leaves room for a slow machine but not for a loop over users."""
    rng = np.random.default_rng(0)
    users = 14_000
    predictions = np.argsort(rng.random((users, 100)), axis=1)[:, :20]
    truth = ItemSets.from_pairs(np.repeat(np.arange(users), 7), rng.integers(0, 12_000, users * 7), users)
    started = time.process_time()
    ndcg(find_hits(predictions, truth), 20, "paper")
    assert time.process_time() - started < 0.25


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
    lists = [f"{name}@{n}" for n in (10, 20) for name in ("repetition", "novelty")]
    assert score_users(RANKINGS, HISTORY, FUTURE).columns == ["user", *expected, *lists]


def test_a_user_without_a_future_has_no_score() -> None:
    scores = score_users(ranked({"ann": ["milk"], "kim": ["milk"]}), HISTORY, FUTURE, cutoffs=[1])
    assert scores["recall@1"].to_list() == [1, None]
    assert scores["recall@1"].mean() == 1


def test_ids_may_be_of_different_widths() -> None:
    future = pl.DataFrame({"user": [1, 2], "item": [5, 6]}, schema={"user": pl.Int32, "item": pl.Int16})
    rankings = pl.DataFrame({"user": [2, 1], "items": [[6], [6]]})
    assert score_users(rankings, future, future, cutoffs=[1])["recall@1"].to_list() == [1, 0]


def test_an_empty_ranking_table() -> None:
    assert score_users(ranked({}), HISTORY, FUTURE).shape == (0, 41)


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidFrameError, match="once"):
        score_users(pl.concat([RANKINGS, RANKINGS]), HISTORY, FUTURE)
    with pytest.raises(InvalidRequestError, match=r"\[0\]"):
        score_users(RANKINGS, HISTORY, FUTURE, cutoffs=[0])
    with pytest.raises(InvalidRequestError, match="twice"):
        score_users(ranked({"ann": ["milk", "milk"]}), HISTORY, FUTURE)


@pytest.mark.needs("tafeng")
def test_repeat_share_and_recall_of_tafeng(tafeng: Holdout) -> None:
    """16.6 % of the future's items are repeats (README of the data)."""
    assert len(repeats_of(tafeng)) / len(tafeng.future) == pytest.approx(0.166, abs=0.0005)
    scores = score_users(gp_topfreq(tafeng.history, all_users_split(*tafeng), 20), *tafeng)
    assert scores["recall@10"].mean() == pytest.approx(0.1346, abs=0.0001)


def test_repeat_share_of_the_complete_journey(journey: Holdout) -> None:
    """The means of all items, of repeats and of new items must agree with the share of repeats."""
    scores = score_users(gp_topfreq(journey.history, all_users_split(*journey), 20), *journey)
    repeats = repeats_of(journey)
    assert len(repeats) / len(journey.future) == pytest.approx(0.437, abs=0.0005)
    assert scores["repeat_recall@20"].count() == repeats["user"].n_unique()
    sums = scores.select(pl.sum("precision@20", "repeat_precision@20", "explore_precision@20")).row(0)
    assert sums[0] == pytest.approx(sums[1] + sums[2])
    assert scores["recall@10"].mean() == pytest.approx(0.1618, abs=0.0001)


def repeats_of(data: Holdout) -> pl.DataFrame:
    """Return the purchases to predict that are in their user's history."""
    own = data.history.select("user", "item").unique()
    return data.future.join(own, on=["user", "item"], how="semi")
