"""Datasets of Table 2 with the baskets to be predicted, and engines scored against them."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from unbasket.datasets import hold_out_last, load
from unbasket.domain.ids import Id
from unbasket.domain.progress import Progress
from unbasket.domain.results import Recommendation
from unbasket.engine.recommender import Recommender
from unbasket.evaluation import (
    EvaluationProtocol,
    Hits,
    ItemSets,
    Split,
    find_hits,
    first_of_twins,
    ndcg,
    recall,
    score_users,
)
from unbasket.params import Params

Answers = dict[Id, list[Recommendation]]
CUTOFFS = (10, 20)
LENGTH = max(CUTOFFS)
NEXT = "next basket"
LAST = "last history basket"
UNION = "union of the next three"
COUNTED = "union, repeats counted"
"""The paper's code divides by the length of its list of true items, which holds an item as often as it was bought."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """A history, and one or several ways to say what comes next."""

    history: pl.DataFrame
    params: Params
    targets: dict[str, pl.DataFrame]


def read(dataset: str) -> Evaluated:
    """A dataset of the paper with its targets; Instacart's is made from its history, for lack of the real one."""
    data = load(dataset)
    assert data.params is not None, f"{dataset} is not a dataset of the paper"
    if data.future is None:
        held = hold_out_last(data)
        assert held.future is not None
        return Evaluated(held.history, data.params, {LAST: held.future})
    targets = {NEXT: data.future}
    union = load(dataset, future="union").future
    assert union is not None
    if union.height > data.future.height:
        targets |= {UNION: union, COUNTED: union}
    return Evaluated(data.history, data.params, targets)


def purchases_by_basket(history: pl.DataFrame) -> list[tuple[Id, Id, int, list[Id]]]:
    """(user, basket, time, items) in order of time over all users, as a shop would see them."""
    baskets = history.group_by("user", "basket", "time", maintain_order=True).agg("item").sort("time", "user", "basket")
    return list(baskets.iter_rows())


def shuffled_baskets(history: pl.DataFrame, seed: int) -> list[tuple[Id, Id]]:
    """All (user, basket) in random order."""
    baskets = history.select("user", "basket").unique().sort("user", "basket")
    order = np.random.default_rng(seed).permutation(baskets.height)
    return list(baskets[order].iter_rows())


def without(history: pl.DataFrame, baskets: list[tuple[Id, Id]]) -> pl.DataFrame:
    """The history that never had these baskets."""
    schema = {name: history.schema[name] for name in ("user", "basket")}
    gone = pl.DataFrame(baskets, schema=schema, orient="row")
    return history.join(gone, on=["user", "basket"], how="anti", maintain_order="left")


def answers(engine: Recommender, split: Split, progress: Progress) -> Answers:
    """The recommendations for all queries that the engine knows, with their scores."""
    return engine.recommend_many([user for user in split.queries if user in engine], LENGTH, progress=progress)


def scores(answered: Answers, scored: list[Id], data: Evaluated, target: str) -> pl.DataFrame:
    """A row per user, a column per metric."""
    asked = [user for user in scored if user in answered]
    rankings = pl.DataFrame({"user": asked, "items": [[item for item, _ in answered[user]] for user in asked]})
    future = data.targets[target]
    return _counted(rankings, future) if target == COUNTED else score_users(rankings, data.history, future, CUTOFFS)


def _counted(rankings: pl.DataFrame, future: pl.DataFrame) -> pl.DataFrame:
    """As `score_users`, but the size of the truth counts repeats; the items themselves are a set as ever."""
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


def scored_users(engine: Recommender, split: Split, protocol: EvaluationProtocol) -> list[Id]:
    """The queries who count under the protocol, in the order of their ids."""
    queries = split.queries.to_list()
    if not protocol.twins_once:
        return queries
    users = engine.users()
    vectors = [tuple(engine.vector(user).items()) for user in users]
    first = dict(zip(users, first_of_twins(users, vectors), strict=True))
    return [user for user in queries if first.get(user, False)]
