"""Metrics against a slow implementation written from the definitions, and against scikit-learn.

Apart from test_metrics.py, which has values worked out by hand, since this file is an oracle of its own.
"""

import math
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.evaluation._item_sets import ItemSets
from unbasket.evaluation.metrics import METRICS, find_hits, hit_rate, ndcg, precision, recall, score_users

ITEMS = 12
RANKS = 8


class Case(NamedTuple):
    predictions: list[int]
    truth: set[int]
    history: set[int]


ITEM_SETS = st.sets(st.integers(0, ITEMS - 1))
CASES = st.builds(Case, st.lists(st.integers(0, ITEMS - 1), unique=True, max_size=RANKS), ITEM_SETS, ITEM_SETS)


def naive_gain(predictions: list[int], truth: set[int], n: int) -> float:
    return sum(1 / math.log2(rank + 1) for rank, item in enumerate(predictions[:n], start=1) if item in truth)


def naive_ideal(n: int) -> float:
    return sum(1 / math.log2(rank + 1) for rank in range(1, n + 1))


def naive_metrics(predictions: list[int], truth: set[int], n: int) -> dict[str, float]:
    names = ("recall", "precision", "hit_rate", "paper", "hu", "standard")
    if not truth:
        return dict.fromkeys(names, math.nan)
    hits = len(truth.intersection(predictions[:n]))
    smaller = min(n, len(truth))
    return {
        "recall": hits / len(truth),
        "precision": hits / n,
        "hit_rate": float(hits > 0),
        "paper": naive_gain(predictions, truth, smaller) / naive_ideal(smaller),
        "hu": naive_gain(predictions, truth, n) / naive_ideal(len(truth)),
        "standard": naive_gain(predictions, truth, n) / naive_ideal(smaller),
    }


def padded(cases: list[Case]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    matrix = np.full((len(cases), RANKS), -1)
    for row, case in enumerate(cases):
        matrix[row, : len(case.predictions)] = case.predictions
    return matrix


@settings(deadline=None)  # a busy machine is not a failure
@given(st.lists(CASES, min_size=1, max_size=6), st.integers(1, RANKS))
def test_every_metric_equals_the_naive_one(cases: list[Case], n: int) -> None:
    truth = ItemSets.from_lists([case.truth for case in cases])
    history = ItemSets.from_lists([case.history for case in cases])
    truths = {
        "all": (truth, [case.truth for case in cases]),
        "repeat": (truth.intersection(history), [case.truth & case.history for case in cases]),
        "explore": (truth.difference(history), [case.truth - case.history for case in cases]),
    }
    for sets, naive_truths in truths.values():
        hits = find_hits(padded(cases), sets)
        fast = {
            "recall": recall(hits, n),
            "precision": precision(hits, n),
            "hit_rate": hit_rate(hits, n),
            "paper": ndcg(hits, n, "paper"),
            "hu": ndcg(hits, n, "hu"),
            "standard": ndcg(hits, n, "standard"),
        }
        for row, (case, naive_truth) in enumerate(zip(cases, naive_truths, strict=True)):
            slow = naive_metrics(case.predictions, naive_truth, n)
            assert {name: values[row] for name, values in fast.items()} == pytest.approx(slow, nan_ok=True)


def naive_list_metrics(case: Case, n: int, buyers: dict[int, int], users: int) -> dict[str, float]:
    """Items already bought / n; the mean of -log2(buyers / users) over the items shown; distinct categories / n."""
    shown = case.predictions[:n]
    surprises = [-math.log2(max(buyers[item], 1) / users) for item in shown]
    return {
        "repetition": len([item for item in shown if item in case.history]) / n,
        "novelty": sum(surprises) / len(shown) if shown else 0.0,
        "diversity": len({item % 3 for item in shown if item != 0}) / n,  # item 0 has no category
    }


@settings(deadline=None)
@given(st.lists(CASES, min_size=1, max_size=6), st.integers(1, RANKS))
def test_every_metric_of_lists_equals_the_naive_one(cases: list[Case], n: int) -> None:
    schema = {"user": pl.Int64, "item": pl.Int64}
    history = pl.DataFrame([(u, i) for u, case in enumerate(cases) for i in case.history], schema, orient="row")
    future = pl.DataFrame([(u, i) for u, case in enumerate(cases) for i in case.truth], schema, orient="row")
    rankings = pl.DataFrame(
        {"user": range(len(cases)), "items": [case.predictions for case in cases]},
        {"user": pl.Int64, "items": pl.List(pl.Int64)},
    )
    categories = pl.DataFrame({"item": range(1, ITEMS), "category": [f"kind {i % 3}" for i in range(1, ITEMS)]})
    own = {"own": lambda items, truth, bought: len(items) + len(truth) / 100 + len(bought) / 10_000}
    scores = score_users(rankings, history, future, [n], categories=categories, metrics=own)
    buyers = {item: len([case for case in cases if item in case.history]) for item in range(ITEMS)}
    users = max(1, len([case for case in cases if case.history]))
    for row, case in zip(scores.iter_rows(named=True), cases, strict=True):
        slow = naive_list_metrics(case, n, buyers, users)
        assert {name: row[f"{name}@{n}"] for name in slow} == pytest.approx(slow)
        expected = len(case.predictions[:n]) + len(case.truth) / 100 + len(case.history) / 10_000
        assert row[f"own@{n}"] == pytest.approx(expected)
        hits = naive_metrics(case.predictions, case.truth, n)
        assert len(METRICS) == len(hits)
        assert row[f"recall@{n}"] == (None if math.isnan(hits["recall"]) else pytest.approx(hits["recall"]))


@settings(deadline=None)
@given(st.permutations(range(ITEMS)), st.sets(st.integers(0, ITEMS - 1), min_size=1), st.integers(1, ITEMS))
def test_standard_ndcg_equals_that_of_scikit_learn(ranking: list[int], truth: set[int], n: int) -> None:
    """scikit-learn ranks all items by score, so it applies to complete rankings without ties."""
    from sklearn.metrics import ndcg_score  # here, since its import would slow down every collection of tests

    relevance = [[float(item in truth) for item in range(ITEMS)]]
    scores = [[float(-ranking.index(item)) for item in range(ITEMS)]]
    hits = find_hits(np.array([ranking]), ItemSets.from_lists([truth]))
    assert ndcg(hits, n, "standard")[0] == pytest.approx(ndcg_score(relevance, scores, k=n))
