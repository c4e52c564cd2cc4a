"""Figures (a) and (b): update time as additions or deletions accumulate."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from unbasket.domain.results import Progress
from unbasket.evaluation import plots
from unbasket.reproduction import paper, workloads
from unbasket.reproduction.baselines import DenseRetrain, Engine, PaperRules, UpdateMethod
from unbasket.reproduction.section import Finding, Row, Section, StepProgress, Table, number
from unbasket.reproduction.workloads import Settings, Stream

METHODS: dict[str, Callable[[Stream], UpdateMethod]] = {
    "retrain": lambda stream: DenseRetrain(stream.params, stream.dimension, len(stream.baskets)),
    "paper's rules": lambda stream: PaperRules(stream.params, stream.dimension),
    "ours": lambda stream: Engine(stream.params, stream.others, recommend=False),
    "ours, with a recommendation": lambda stream: Engine(stream.params, stream.others, recommend=True),
}
ORDERS = ("end", "start", "random")
RUNS = 3  # an event's time is the median of these runs: other programs disturb one of them, seldom two
POINTS = 40  # of a curve; each is the mean of the events since the previous point

_STYLES = {
    "retrain": {"color": plots.RETRAIN},
    "paper's rules": {"color": plots.PAPER},
    "ours": {"color": plots.OURS},
    "ours, with a recommendation": {"color": plots.OURS, "linestyle": "--"},
}


def run_additions(dataset: str, settings: Settings, step: StepProgress) -> list[Row]:
    """Measure a row per method and point of its curve."""
    stream = workloads.read(dataset, settings.stream_baskets)
    rows: list[Row] = []
    for name, make in METHODS.items():
        warm_up(make, stream)
        runs = [_timed(make(stream).add, stream.baskets, partial(step, f"additions, {name}")) for _ in range(RUNS)]
        rows += [{"stream": dataset, "method": name} | point for point in curve(runs)]
    return rows


def run_deletions(dataset: str, settings: Settings, step: StepProgress) -> list[Row]:
    """Measure a row per order, method and point of its curve. All baskets but the last are deleted."""
    stream = workloads.read(dataset, settings.stream_baskets)
    rows: list[Row] = []
    for order in ORDERS:
        positions = deletion_positions(order, len(stream.baskets), settings.seed)
        for name, make in METHODS.items():
            warm_up(make, stream)
            runs = []
            for _ in range(RUNS):
                method = make(stream)
                method.load(stream.baskets)
                runs.append(_timed(method.delete, positions, partial(step, f"deletions from {order}, {name}")))
            rows += [{"stream": dataset, "order": order, "method": name} | point for point in curve(runs)]
    return rows


def _timed(update: Callable[[Any], float], events: Sequence[Any], progress: Progress) -> list[float]:
    seconds = []
    for done, event in enumerate(events, 1):
        seconds.append(update(event))
        progress(done, len(events))
    return seconds


def deletion_positions(order: str, count: int, seed: int) -> list[int]:
    """Return the position of each deletion, in sequence, until one basket is left."""
    lengths = range(count, 1, -1)
    if order == "random":
        rng = np.random.default_rng(seed)
        return [int(rng.integers(length)) for length in lengths]
    return [0 if order == "start" else length - 1 for length in lengths]


def warm_up(make: Callable[[Stream], UpdateMethod], stream: Stream) -> None:
    """Fill caches before the measurement."""
    method = make(stream)
    method.load(stream.baskets[:-1][:20])
    method.add(stream.baskets[-1])
    method.delete(0)
    method.delete(1)


def curve(runs: list[list[float]]) -> list[Row]:
    """Compute the points of a curve from the seconds of the same events in several runs."""
    seconds = np.median(runs, axis=0)
    chunks = [chunk for chunk in np.array_split(np.arange(len(seconds)), POINTS) if len(chunk)]
    return [{"events": int(chunk[-1]) + 1, "ms": float(seconds[chunk].mean()) * 1e3} for chunk in chunks]


_NOTES = (
    "Retrain: the paper's baseline, dense vectors in NumPy on one core; the multi-hot matrix of the history is "
    "precomputed, and only the weighted sum over it is timed (by einsum; BLAS on an idle machine is up to twice as "
    "fast). Paper's rules: its incremental and decremental equations, dense, in NumPy. Ours: the public call. Ours, "
    "with a recommendation: that call and the recommendation, end to end.",
    f"An event's time is the median of {RUNS} runs; a point is the mean of the events since the previous point.",
    "Single-item is the paper's stream: one user, one item, m = 2. Coop-100 is the longest history of 100 real "
    "supermarket customers (3,420 items, m = 7, k = 50), with the other 99 in the index.",
    "Dotted lines show the paper's claims for the state update, and the median micro-batch of Spark around it (about "
    "120 ms in its authors' result files), which a customer of that system has to wait for.",
)
_WHY_ABOVE = (
    "Our update takes longer than the paper's rule alone: the rule changes one dense vector and nothing else. Our call "
    "also checks ids, stores the basket and updates the neighbor index for the next recommendation."
)


def present_additions(frame: pl.DataFrame) -> Section:
    """Present the curves, and the first, median and last point of each as a table."""
    names = frame["stream"].unique(maintain_order=True).to_list()
    figure, axes = plots.panels(1, len(names), 5.2 * len(names) + 1, 5)
    for axis, name in zip(axes, names, strict=True):
        _plot(axis, frame.filter(pl.col("stream") == name), paper.ADDITION_MS, name, "baskets added so far")
    plots.legend_below(figure, axes[0], 3)
    tables = (_points_table(frame, ["stream", "method"]),)
    return Section(_findings(frame, paper.ADDITION_MS, "addition"), (_WHY_ABOVE, *_NOTES), tables, figure)


def present_deletions(frame: pl.DataFrame) -> Section:
    """Present a panel per stream and order, and the points as a table."""
    names = frame["stream"].unique(maintain_order=True).to_list()
    figure, axes = plots.panels(len(names), len(ORDERS), 14, 4 * len(names) + 0.6)
    cells = [(name, order) for name in names for order in ORDERS]
    for axis, (name, order) in zip(axes, cells, strict=True):
        points = frame.filter(pl.col("stream") == name, pl.col("order") == order)
        _plot(axis, points, paper.DELETION_MS, f"{name}, deletions: {order}", "baskets deleted so far")
    plots.legend_below(figure, axes[0], 3)
    tables = (_points_table(frame, ["stream", "order", "method"]),)
    return Section(_findings(frame, paper.DELETION_MS, "deletion"), _NOTES, tables, figure)


def _findings(frame: pl.DataFrame, claim: float, event: str) -> tuple[Finding, ...]:
    """Check that our median point is below the paper's claim; other programs may disturb a few points."""
    ours = frame.filter(pl.col("method") == "ours")["ms"]
    below, median = int((ours < claim).sum()), ours.median()
    assert isinstance(median, float)
    text = (
        f"Our median point is {median:.3f} ms per {event}, and {below} of {len(ours)} points lie below the paper's "
        f"{claim:g} ms."
    )
    return (Finding(text, median < claim),)


def _plot(axis: Axes, points: pl.DataFrame, claim_ms: float, title: str, x_label: str) -> None:
    for name in METHODS:
        curve = points.filter(pl.col("method") == name)
        axis.plot(curve["events"], curve["ms"], label=name, linewidth=1.6, **_STYLES[name])  # type: ignore[arg-type]
    axis.axhline(claim_ms, color=plots.CLAIM, linestyle=":", label=f"paper's claim, {claim_ms:g} ms")
    micro_batch = f"Spark micro-batch around it, {paper.MICRO_BATCH_MS:g} ms"
    axis.axhline(paper.MICRO_BATCH_MS, color=plots.CLAIM, linestyle="-.", label=micro_batch)
    axis.set_yscale("log")
    axis.set_title(title)
    axis.set_xlabel(x_label)
    axis.set_ylabel("time of an update (ms, log scale)")


def _points_table(frame: pl.DataFrame, keys: list[str]) -> Table:
    ms, curves = pl.col("ms"), frame.group_by(keys, maintain_order=True)
    points = curves.agg(first=ms.first(), middle=ms.median(), last=ms.last(), events=pl.col("events").last())
    rows = [
        (*row[: len(keys)], *(number(value, 4) for value in row[len(keys) : -1]), number(row[-1], 0))
        for row in points.iter_rows()
    ]
    header = (*keys, "first point, ms", "median point, ms", "last point, ms", "events")
    return Table("Milliseconds per update", header, rows)
