"""Datasets of Table 2 with their targets, and engines scored against them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from unbasket.datasets import hold_out_last, load
from unbasket.domain.ids import Id
from unbasket.domain.results import Progress, Recommendation
from unbasket.engine.recommender import Recommender
from unbasket.evaluation import Hits, ItemSets, Split, find_hits, ndcg, recall, score_users
from unbasket.params import Params

Recommendations = dict[Id, list[Recommendation]]
CUTOFFS = (10, 20)
LENGTH = max(CUTOFFS)
NEXT = "next basket"
LAST = "last history basket"
UNION = "union of the next three"
COUNTED = "union, repeats counted"
"""The paper's code divides by the length of its list of true items, which repeats an item for each purchase."""


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationData:
    """A history, its parameters, and the baskets to predict under one or several definitions (targets)."""

    history: pl.DataFrame
    params: Params
    targets: dict[str, pl.DataFrame]


def read(dataset: str) -> EvaluationData:
    """Read a dataset of the paper with its targets; Instacart's, which is not public, is cut off its history."""
    data = load(dataset)
    assert data.params is not None, f"{dataset} is not a dataset of the paper"
    if data.future is None:
        held = hold_out_last(data)
        assert held.future is not None
        return EvaluationData(held.history, data.params, {LAST: held.future})
    targets = {NEXT: data.future}
    union = load(dataset, future="union").future
    assert union is not None
    if union.height > data.future.height:
        targets |= {UNION: union, COUNTED: union}
    return EvaluationData(data.history, data.params, targets)


def purchases_by_basket(history: pl.DataFrame) -> list[tuple[Id, Id, int, list[Id]]]:
    """Return (user, basket, time, items) of all users, ordered by time as in a shop."""
    baskets = history.group_by("user", "basket", "time", maintain_order=True).agg("item").sort("time", "user", "basket")
    return list(baskets.iter_rows())


def shuffled_baskets(history: pl.DataFrame, seed: int) -> list[tuple[Id, Id]]:
    """Return all (user, basket) in random order."""
    baskets = history.select("user", "basket").unique().sort("user", "basket")
    order = np.random.default_rng(seed).permutation(baskets.height)
    return list(baskets[order].iter_rows())


def without(history: pl.DataFrame, baskets: list[tuple[Id, Id]]) -> pl.DataFrame:
    """Return the history without these baskets."""
    schema = {name: history.schema[name] for name in ("user", "basket")}
    removed = pl.DataFrame(baskets, schema=schema, orient="row")
    return history.join(removed, on=["user", "basket"], how="anti", maintain_order="left")


def recommend_all(engine: Recommender, split: Split, progress: Progress) -> Recommendations:
    """Recommend to all queries that the engine knows."""
    return engine.recommend_many([user for user in split.queries if user in engine], LENGTH, progress=progress)


def scores(recommended: Recommendations, queries: Iterable[Id], data: EvaluationData, target: str) -> pl.DataFrame:
    """Score the queries with recommendations: a row per user, a column per metric."""
    users = [user for user in queries if user in recommended]
    rankings = pl.DataFrame({"user": users, "items": [[item for item, _ in recommended[user]] for user in users]})
    future = data.targets[target]
    if target == COUNTED:
        return _score_counts(rankings, future)
    return score_users(rankings, data.history, future, CUTOFFS)


def _score_counts(rankings: pl.DataFrame, future: pl.DataFrame) -> pl.DataFrame:
    """Score like `score_users`, but count repeats in the size of the truth. The truth itself is still a set."""
    truth = rankings.join(
        future.group_by("user").agg("item", pl.col("quantity").sum()), on="user", how="left", maintain_order="left"
    )
    predictions = np.full((rankings.height, LENGTH), -1, np.int64)
    for row, items in enumerate(rankings["items"]):
        predictions[row, : len(items)] = items
    found = find_hits(predictions, ItemSets.from_lists(truth["item"].fill_null([]).to_list())).found
    hits = Hits(found, truth["quantity"].fill_null(0).to_numpy())
    columns = {f"recall@{n}": recall(hits, n) for n in CUTOFFS}
    columns |= {f"ndcg_paper@{n}": ndcg(hits, n, "paper") for n in CUTOFFS}
    return rankings.select("user", *(pl.Series(name, values, nan_to_null=True) for name, values in columns.items()))
