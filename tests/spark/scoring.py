"""Evaluation of Spark's recommendations by the code that evaluates an engine."""

from collections.abc import Iterable
from dataclasses import replace
from unittest.mock import patch

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from unbasket import Params, Recommendation, Recommender
from unbasket.domain.ids import Id
from unbasket.evaluation import PROTOCOLS, Holdout, tifuknn
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.spark import recommend

PAPER = PROTOCOLS["paper"]
PARAMS = Params(group_size=2, neighbors=7, alpha=0.6)


def recommendations(frame: DataFrame) -> dict[Id, list[Recommendation]]:
    """Collect Spark's recommendations in the form of an engine's."""
    return {row.user: [Recommendation(*pair) for pair in row.recommendations] for row in frame.collect()}


class _Engine:
    """The interface of an engine that evaluation needs, on vectors and recommendations from Spark."""

    def __init__(self, vectors: DataFrame, params: Params) -> None:
        rows = vectors.select("user", "items", "weights").collect()
        self._vectors = {row.user: dict(zip(row["items"], row.weights, strict=True)) for row in rows}
        self._found = recommendations(recommend(vectors, params, n=20))

    def __contains__(self, user: Id) -> bool:
        return user in self._vectors

    def users(self) -> list[Id]:
        return sorted(self._vectors)

    def vector(self, user: Id) -> dict[Id, float]:
        return self._vectors[user]

    def recommend_many(self, users: Iterable[Id], n: int, progress: object) -> dict[Id, list[Recommendation]]:
        assert (n, callable(progress)) == (20, True)
        return {user: self._found[user] for user in users}


def scores_from_spark(vectors: DataFrame, params: Params, shop: Holdout) -> pl.DataFrame:
    """Compute every user's metrics under the paper's protocol, with Spark in place of the engine."""
    engine = _Engine(vectors, replace(params, neighbors=PAPER.true_neighbors(params.neighbors)))
    with patch.object(tifuknn, "fit_candidates", lambda *_: engine):
        return evaluate(shop, params, PAPER).scores[TIFUKNN]


def scores_from_the_engine(params: Params, shop: Holdout) -> pl.DataFrame:
    """Compute the same metrics with the engine."""
    return evaluate(shop, params, PAPER).scores[TIFUKNN]


def vectors_of(spark: SparkSession, rec: Recommender, user: str, item: str) -> DataFrame:
    """Create a frame of an engine's vectors, with ids of these types."""
    rows = [(name, [*rec.vector(name)], [*rec.vector(name).values()]) for name in rec.users()]
    return spark.createDataFrame(rows, f"user {user}, items array<{item}>, weights array<double>")
