"""An evaluation of all users of The Complete Journey, end to end, by the engine and by common alternatives.

    python benchmarks/evaluation.py

From the purchases to the metrics: vectors, neighbors, scores, ranking, recall and NDCG, with the paper's parameters for
Ta-Feng, under the protocol `all-users`. All must produce the same figures, so all break ties by the lower id. Reading
the data and a first run of the engine are not timed. Each baseline runs once (scikit-learn once for each setting of
n_jobs; the faster run counts), the engine several times before, between and after them: its median counts. Run it on
an idle machine: the engine uses all cores, the baselines mostly one, so other load slows the engine more.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from unbasket import datasets
from unbasket.evaluation import PROTOCOLS, Holdout, score_users
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.params import Params

METRICS = ("recall@10", "ndcg_paper@10", "recall@20", "ndcg_paper@20")
N = 20
BATCH = 1_000
REPEATS = 3
TOLERANCE = 0.00005  # four digits
TIE_BREAK = 1e-13  # times the row or column number: orders equal floats without affecting others

console = Console(width=110)
Matrix = Any  # scipy.sparse.csr_array; SciPy has no types
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Run:
    """The wall-clock and CPU time of one evaluation, and its mean metrics."""

    seconds: float
    cpu_seconds: float
    figures: tuple[float, ...]


def main() -> None:
    """Run all, check that the figures agree, and print the table."""
    dataset = datasets.load("completejourney")
    assert dataset.future is not None
    data, params = Holdout(dataset.history, dataset.future), Params.paper("tafeng")
    console.print(f"The Complete Journey, {data.future['user'].n_unique():,} users, {os.cpu_count()} cores, {params}")

    engine(data, params)  # warm up
    ours: list[Run] = []
    baselines: dict[str, Run] = {}
    for name, pipeline in BASELINES.items():
        ours += [timed("engine", engine, data, params) for _ in range(REPEATS)]
        baselines[name] = timed(name, pipeline, data, params)
    ours += [timed("engine", engine, data, params) for _ in range(REPEATS)]

    typical = Run(median(run.seconds for run in ours), median(run.cpu_seconds for run in ours), ours[0].figures)
    for other in baselines.values():
        assert np.allclose(other.figures, typical.figures, rtol=0, atol=TOLERANCE), (other.figures, typical.figures)
    scipy = baselines.pop("SciPy")
    fastest = min(baselines.values(), key=lambda run: run.seconds)
    console.print(table({"Unbasket": typical, "SciPy": scipy, "scikit-learn": fastest}))
    assert scipy.seconds >= 5 * typical.seconds, "less than 5 times as fast as SciPy"
    assert fastest.seconds >= 5 * typical.seconds, "less than 5 times as fast as scikit-learn"


def engine(data: Holdout, params: Params) -> pl.DataFrame:
    """Evaluate with this package."""
    return evaluate(data, params, PROTOCOLS["all-users"]).scores[TIFUKNN]


def scipy_pipeline(data: Holdout, params: Params) -> pl.DataFrame:
    """Evaluate with sparse dot products, argpartition, sparse averaging, argpartition."""
    users, items, vectors = user_vectors(data.history, params)
    squares = vectors.multiply(vectors).sum(axis=1) + TIE_BREAK * np.arange(len(users))
    best = []
    for rows in batches(len(users)):
        # |a - b|^2 without |a|^2, a constant
        distances = squares - 2 * (vectors[rows] @ vectors.T).toarray()
        distances[np.arange(len(rows)), rows] = np.inf
        near = np.argpartition(distances, params.neighbors - 1, axis=1)[:, : params.neighbors]
        scores = prediction(vectors, rows, near, float(params.alpha))
        top = np.argpartition(-scores, N - 1, axis=1)[:, :N]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1)
        best.append(np.take_along_axis(top, order, axis=1))
    return scored(data, users, items[np.concatenate(best)])


def scikit_learn(data: Holdout, params: Params, *, n_jobs: int) -> pl.DataFrame:
    """Evaluate with brute-force nearest neighbors on the sparse matrix, mean, argsort."""
    users, items, vectors = user_vectors(data.history, params)
    model = NearestNeighbors(n_neighbors=params.neighbors + 1, algorithm="brute", n_jobs=n_jobs).fit(vectors)
    best = []
    for rows in batches(len(users)):
        near = without_self(model.kneighbors(vectors[rows], return_distance=False), rows)
        scores = prediction(vectors, rows, near, float(params.alpha))
        best.append(np.argsort(-scores, axis=1)[:, :N])
    return scored(data, users, items[np.concatenate(best)])


def user_vectors(history: pl.DataFrame, params: Params) -> tuple[Rows, Rows, Matrix]:
    """Return the users, the items, and a row of item weights per user (paper, equations 1 and 2)."""
    m, r_b, r_g = params.group_size, params.basket_decay, params.group_decay
    baskets = history.select("user", "basket", "time").unique().sort("user", "time", "basket")
    count = pl.len().cast(pl.Int64).over("user")
    baskets = baskets.with_columns(position=pl.int_range(pl.len()).over("user"), count=count)
    group, groups = pl.col("position") // m, (pl.col("count") + m - 1) // m
    size = pl.min_horizontal(m, pl.col("count") - group * m)
    within = r_b ** (size - 1 - pl.col("position") % m).cast(pl.Float64) / size
    across = r_g ** (groups - 1 - group).cast(pl.Float64) / groups
    weighted = history.join(baskets.select("user", "basket", weight=within * across), on=["user", "basket"])
    users, rows = np.unique(weighted["user"].to_numpy(), return_inverse=True)
    items, columns = np.unique(weighted["item"].to_numpy(), return_inverse=True)
    shape = (len(users), len(items))
    return users, items, sparse.coo_array((weighted["weight"].to_numpy(), (rows, columns)), shape).tocsr()


def batches(users: int) -> list[Rows]:
    """Divide row numbers into batches whose dense blocks fit into memory."""
    return np.array_split(np.arange(users), -(-users // BATCH))


def without_self(near: Rows, rows: Rows) -> Rows:
    """Drop the query from its own neighbors, or the last one if users with equal vectors displaced it."""
    own = near == rows[:, np.newaxis]
    own[~own.any(axis=1), -1] = True
    others: Rows = near[~own].reshape(len(rows), -1)
    return others


def prediction(vectors: Matrix, rows: Rows, near: Rows, alpha: float) -> NDArray[np.float64]:
    """Compute the paper's p: alpha * own vector + (1 - alpha) * mean of the neighbors' vectors, dense."""
    count, k = near.shape
    weights, starts = np.full(near.size, 1 / k), np.arange(count + 1) * k
    mean = sparse.csr_array((weights, near.ravel(), starts), (count, vectors.shape[0])) @ vectors
    scores: NDArray[np.float64] = (alpha * vectors[rows] + (1 - alpha) * mean).toarray()
    scores -= TIE_BREAK * np.arange(vectors.shape[1])
    return scores


def scored(data: Holdout, users: Rows, best: Rows) -> pl.DataFrame:
    """Compute the metrics of each user, by the same function for all methods."""
    rankings = pl.DataFrame({"user": users, "items": best})
    return score_users(rankings, data.history, data.future)


def timed(name: str, pipeline: Callable[[Holdout, Params], pl.DataFrame], data: Holdout, params: Params) -> Run:
    """Run a pipeline once, and time it."""
    start, cpu_start = perf_counter(), process_time()
    scores = pipeline(data, params)
    seconds, cpu_seconds = perf_counter() - start, process_time() - cpu_start
    console.print(f"{name}: {seconds:.2f} s")
    return Run(seconds, cpu_seconds, scores.select(pl.col(*METRICS).mean()).row(0))


def table(runs: dict[str, Run]) -> Table:
    """Build the table of times, their ratio to the first, and metrics."""
    first = next(iter(runs.values()))
    result = Table("", "seconds", "times ours", "CPU seconds", *METRICS)
    for name, run in runs.items():
        ratio = f"{run.seconds / first.seconds:.1f}"
        figures = (f"{figure:.5f}" for figure in run.figures)
        result.add_row(name, f"{run.seconds:.2f}", ratio, f"{run.cpu_seconds:.1f}", *figures)
    return result


BASELINES: dict[str, Callable[[Holdout, Params], pl.DataFrame]] = {
    "SciPy": scipy_pipeline,
    "scikit-learn, n_jobs=1": partial(scikit_learn, n_jobs=1),
    "scikit-learn, n_jobs=-1": partial(scikit_learn, n_jobs=-1),
}

if __name__ == "__main__":
    main()
