"""Metrics against a slow implementation written from the definitions, and against scikit-learn.

Apart from test_metrics.py, which has values worked out by hand, since this file is an oracle of its own.
"""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.evaluation._item_sets import ItemSets
from unbasket.evaluation.metrics import find_hits, hit_rate, ndcg, precision, recall

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


@settings(deadline=None)
@given(st.permutations(range(ITEMS)), st.sets(st.integers(0, ITEMS - 1), min_size=1), st.integers(1, ITEMS))
def test_standard_ndcg_equals_that_of_scikit_learn(ranking: list[int], truth: set[int], n: int) -> None:
    """scikit-learn ranks all items by score, so it applies to complete rankings without ties."""
    from sklearn.metrics import ndcg_score  # here, since its import would slow down every collection of tests

    relevance = [[float(item in truth) for item in range(ITEMS)]]
    scores = [[float(-ranking.index(item)) for item in range(ITEMS)]]
    hits = find_hits(np.array([ranking]), ItemSets.from_lists([truth]))
    assert ndcg(hits, n, "standard")[0] == pytest.approx(ndcg_score(relevance, scores, k=n))
