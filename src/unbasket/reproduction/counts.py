"""ValuedShopper with the basket vectors of the paper's code: an item counts as often as it is listed.

The engine's baskets are sets. This dense reference shows that the counts alone explain the difference between its
figures and the paper's.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure

from unbasket.domain.ids import Id
from unbasket.domain.results import Progress, Recommendation
from unbasket.engine.recommender import Recommender
from unbasket.evaluation import PROTOCOLS, plots
from unbasket.evaluation.tifuknn import without_twins
from unbasket.params import Params
from unbasket.reproduction.paper import METRIC_NAMES, published_quality
from unbasket.reproduction.scoring import COUNTED, LENGTH, Recommendations, read, recommend_all, scores
from unbasket.reproduction.section import Finding, Row, Section, StepProgress, Table, number, signed
from unbasket.reproduction.workloads import Settings

PROTOCOL = PROTOCOLS["paper"]
_BLOCK = 250  # users whose distances are in memory at a time
_CLOSE = 0.0001  # the paper's figures have four digits
_SETS, _COUNTS = "sets (the engine)", "counts (dense NumPy)"


def run(dataset: str, _: Settings, step: StepProgress) -> list[Row]:
    """Measure a row per kind of basket and metric."""
    data = read(dataset)
    params = replace(data.params, neighbors=PROTOCOL.true_neighbors(data.params.neighbors))
    split = PROTOCOL.split(data.history, data.targets[COUNTED])
    engine = Recommender(params).fit(data.history)
    queries = without_twins(engine, split).queries
    models = {
        _SETS: recommend_all(engine, split, partial(step, "sets: recommending")),
        _COUNTS: recommend_dense(data.history, params, partial(step, "counts: recommending")),
    }
    rows: list[Row] = []
    for baskets, recommended in models.items():
        table = scores(recommended, queries, data, COUNTED)
        for metric, name in METRIC_NAMES.items():
            ours, paper = table[metric].mean(), published_quality(dataset, "baseline", metric)
            assert isinstance(ours, float)
            assert paper is not None
            facts = {"dataset": dataset, "baskets": baskets, "users": table.height, "metric": name}
            rows.append(facts | {"paper": paper, "ours": ours, "difference": ours - paper})
    return rows


def recommend_dense(history: pl.DataFrame, params: Params, progress: Progress) -> Recommendations:
    """Recommend to all users by the equations of section 2.2, on dense vectors."""
    users, items, vectors = _vectors(history, params)
    squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
    k = min(params.neighbors, len(users) - 1)
    recommended: Recommendations = {}
    alpha = float(params.alpha)
    for start in range(0, len(users), _BLOCK):
        block = vectors[start : start + _BLOCK]
        distances = squares - 2 * (block @ vectors.T)  # without the query's own square, a constant
        own = np.arange(len(block))
        distances[own, start + own] = np.inf
        nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
        for row, vector in enumerate(block):
            prediction = alpha * vector + (1 - alpha) * vectors[nearest[row]].mean(axis=0)
            best = np.argsort(-prediction, kind="stable")[:LENGTH]
            recommended[users[start + row]] = [Recommendation(items[i], float(prediction[i])) for i in best]
        progress(min(start + _BLOCK, len(users)), len(users))
    return recommended


def _vectors(history: pl.DataFrame, params: Params) -> tuple[list[Id], list[Id], npt.NDArray[np.float32]]:
    """Return users and items in id order, and the user vectors as rows: Eq. groupvector, Eq. uservector."""
    m = params.group_size
    baskets = history.select("user", "time", "basket").unique().sort("user", "time", "basket")
    position, count = pl.int_range(pl.len()).over("user"), pl.len().cast(pl.Int64).over("user")
    group, groups = position // m, (count + m - 1) // m
    size = pl.min_horizontal(pl.lit(m), count - group * m)
    decay = params.group_decay ** (groups - 1 - group) * params.basket_decay ** (size - 1 - position % m)
    weights = baskets.select("user", "basket", weight=decay / (size * groups))
    entries = (
        history.join(weights, on=["user", "basket"])
        .group_by("user", "item")
        .agg(value=(pl.col("weight") * pl.col("quantity")).sum())
        .with_columns(row=pl.col("user").rank("dense") - 1, column=pl.col("item").rank("dense") - 1)
    )
    users, items = (entries[name].unique().sort().to_list() for name in ("user", "item"))
    vectors = np.zeros((len(users), len(items)), np.float32)
    vectors[entries["row"].to_numpy(), entries["column"].to_numpy()] = entries["value"].to_numpy()
    return users, items, vectors


def present(frame: pl.DataFrame) -> Section:
    """Present sets and counts beside the paper."""
    rows = [
        (row["dataset"], row["baskets"], row["metric"], number(row["paper"]), number(row["ours"]),
         signed(row["difference"]))
        for row in frame.iter_rows(named=True)
    ]  # fmt: skip
    notes = (
        "Target: the union of the next three baskets, its size counting repeats, as in the paper's code. Sets: the "
        "engine, whose baskets are sets of items. Counts: basket vectors that count an item as often as it is listed, "
        "as the paper's code builds them, in a dense and slow reference that is not part of the engine.",
    )
    header = ("data", "baskets", "metric", "paper, baseline", "ours", "difference")
    gap = frame.filter(pl.col("baskets") == _COUNTS).select(pl.col("difference").abs().max()).item()
    text = f"With items counted as often as they are listed, all four metrics lie within {gap:.4f} of the paper's."
    findings = (Finding(text, gap < _CLOSE),)
    return Section(findings, notes, (Table("The same model on sets and on counts", header, rows),), _draw(frame))


def _draw(frame: pl.DataFrame) -> Figure:
    figure, (axis,) = plots.panels(1, 1, 8, 4.2)
    kinds = frame["baskets"].unique(maintain_order=True).to_list()
    metrics = list(METRIC_NAMES.values())
    positions = np.arange(len(metrics))
    paper = frame.filter(pl.col("baskets") == kinds[0])["paper"]
    axis.bar(positions - 0.27, paper, 0.26, color=plots.PAPER, label="paper, baseline")
    for shift, kind, alpha in zip((0.0, 0.27), kinds, (1.0, 0.5), strict=True):
        ours = frame.filter(pl.col("baskets") == kind)["ours"]
        bars = axis.bar(positions + shift, ours, 0.26, color=plots.OURS, alpha=alpha, label=f"ours, {kind}")
        axis.bar_label(bars, fmt="%.4f", fontsize=7)
    axis.set_xticks(positions, metrics)
    axis.set_ylabel("mean over users")
    axis.set_title("valuedshopper: union of the next three baskets, repeats counted")
    plots.legend_below(figure, axis, 3)
    return figure
