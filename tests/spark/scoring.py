"""Histories of an engine as a frame, and evaluation of Spark's recommendations by the code that evaluates an engine."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from unittest.mock import patch

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from unbasket import Params, Recommendation, Recommender
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.history_table import to_table
from unbasket.domain.ids import Id, IdTypes
from unbasket.evaluation import PROTOCOLS, Holdout, tifuknn
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.spark import recommend, vectors

PAPER = PROTOCOLS["paper"]
PARAMS = Params(group_size=2, neighbors=7, alpha=0.6)


def recommendations(frame: DataFrame) -> dict[Id, list[Recommendation]]:
    """Collect Spark's recommendations in the form of an engine's."""
    return {row.user: [Recommendation(*pair) for pair in row.recommendations] for row in frame.collect()}


def vectors_in(frame: DataFrame, params: Params) -> dict[Id, dict[Id, float]]:
    """Collect the vectors of histories in the form of `Recommender.vector`."""
    rows = vectors(frame, params).collect()
    found = {row.user: dict(zip(row["items"], row.weights, strict=True)) for row in rows}
    assert len(found) == len(rows)
    return found


class _Engine:
    """The interface of an engine that evaluation needs, on vectors and recommendations from Spark."""

    def __init__(self, histories: DataFrame, params: Params) -> None:
        self._vectors = vectors_in(histories, params)
        self._found = recommendations(recommend(histories, params, n=20))

    def __contains__(self, user: Id) -> bool:
        return user in self._vectors

    def users(self) -> list[Id]:
        return sorted(self._vectors)

    def vector(self, user: Id) -> dict[Id, float]:
        return self._vectors[user]

    def recommend_many(self, users: Iterable[Id], n: int, progress: object) -> dict[Id, list[Recommendation]]:
        assert (n, callable(progress)) == (20, True)
        return {user: self._found[user] for user in users}


def scores_from_spark(histories: DataFrame, params: Params, shop: Holdout) -> pl.DataFrame:
    """Compute every user's metrics under the paper's protocol, with Spark in place of the engine."""
    engine = _Engine(histories, replace(params, neighbors=PAPER.true_neighbors(params.neighbors)))
    with patch.object(tifuknn, "fit_candidates", lambda *_: engine):
        return evaluate(shop, params, PAPER).scores[TIFUKNN]


def scores_from_the_engine(params: Params, shop: Holdout) -> pl.DataFrame:
    """Compute the same metrics with the engine."""
    return evaluate(shop, params, PAPER).scores[TIFUKNN]


def histories_of(spark: SparkSession, rec: Recommender) -> DataFrame:
    """Create a frame of an engine's histories."""
    histories = []
    for user in rec.users():
        starts = {0, *accumulate(rec.groups(user))}
        histories.append((user, [(*basket, number in starts) for number, basket in enumerate(rec.history(user))]))
    suppressed = {user: rec.suppressed(user) for user in rec.users()}
    types = IdTypes(*(int if held == "number" else str for held in rec.id_types().values()))
    return spark.createDataFrame(to_table(BasketColumns.of(histories), suppressed, types))
