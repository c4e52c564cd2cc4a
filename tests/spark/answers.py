"""Evaluation of what Spark answers, by the code that evaluates an engine."""

from collections.abc import Iterable
from dataclasses import replace
from unittest.mock import patch

import polars as pl
from pyspark.sql import DataFrame

from unbasket import Params, Recommendation
from unbasket.domain.ids import Id
from unbasket.evaluation import PROTOCOLS, Holdout, tifuknn
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.spark import recommend

PAPER = PROTOCOLS["paper"]


def answers(frame: DataFrame) -> dict[Id, list[Recommendation]]:
    """Spark's recommendations as an engine says them."""
    return {row.user: [Recommendation(*pair) for pair in row.recommendations] for row in frame.collect()}


class _Engine:
    """What evaluation asks an engine for, from vectors and recommendations that Spark has made."""

    def __init__(self, vectors: DataFrame, params: Params) -> None:
        rows = vectors.select("user", "items", "weights").collect()
        self._vectors = {row.user: dict(zip(row["items"], row.weights, strict=True)) for row in rows}
        self._found = answers(recommend(vectors, params, n=20))

    def __contains__(self, user: Id) -> bool:
        return user in self._vectors

    def users(self) -> list[Id]:
        return sorted(self._vectors)

    def vector(self, user: Id) -> dict[Id, float]:
        return self._vectors[user]

    def recommend_many(self, users: Iterable[Id], n: int, progress: object) -> dict[Id, list[Recommendation]]:
        assert (n, progress) == (20, None)
        return {user: self._found[user] for user in users}


def scores_from_spark(vectors: DataFrame, params: Params, shop: Holdout) -> pl.DataFrame:
    """Every user's every metric under the paper's protocol, with Spark in the place of the engine."""
    engine = _Engine(vectors, replace(params, neighbors=PAPER.true_neighbors(params.neighbors)))
    with patch.object(tifuknn, "fit_candidates", lambda *_: engine):
        return evaluate(shop, params, PAPER).scores[TIFUKNN]


def scores_from_the_engine(params: Params, shop: Holdout) -> pl.DataFrame:
    """The same, as it is."""
    return evaluate(shop, params, PAPER).scores[TIFUKNN]
