"""Figures (a) and (b): the time of an update as additions, or deletions, accumulate."""

from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from unbasket.domain.progress import Progress
from unbasket.evaluation import plots
from unbasket.reproduction import claims, workloads
from unbasket.reproduction.baselines import DenseRetrain, Engine, PaperRules, Rival
from unbasket.reproduction.progress import Watch
from unbasket.reproduction.section import Finding, Row, Section, Table, number
from unbasket.reproduction.settings import Settings
from unbasket.reproduction.workloads import Stream

RIVALS: dict[str, Callable[[Stream], Rival]] = {
    "retrain": lambda stream: DenseRetrain(stream.params, stream.dimension, len(stream.baskets)),
    "paper's rules": lambda stream: PaperRules(stream.params, stream.dimension),
    "ours": lambda stream: Engine(stream.params, stream.others, recommend=False),
    "ours, with a recommendation": lambda stream: Engine(stream.params, stream.others, recommend=True),
}
ORDERS = ("end", "start", "random")
RUNS = 3  # each event is timed in so many runs, and the median is taken: other programs disturb one, seldom two
POINTS = 40  # of a curve: each is the mean of the events between it and the one before

_STYLES = {
    "retrain": {"color": plots.RETRAIN},
    "paper's rules": {"color": plots.PAPER},
    "ours": {"color": plots.OURS},
    "ours, with a recommendation": {"color": plots.OURS, "linestyle": "--"},
}


def run_additions(dataset: str, settings: Settings, watch: Watch) -> list[Row]:
    """A row per rival and point of its curve."""
    stream = workloads.read(dataset, settings.stream_baskets)
    rows: list[Row] = []
    for name, make in RIVALS.items():
        warm_up(make, stream)
        runs = [_additions(make(stream), stream, partial(watch, f"additions, {name}")) for _ in range(RUNS)]
        rows += [{"stream": dataset, "rival": name} | point for point in curve(runs)]
    return rows


def run_deletions(dataset: str, settings: Settings, watch: Watch) -> list[Row]:
    """A row per order, rival and point of its curve. All baskets but the last are deleted."""
    stream = workloads.read(dataset, settings.stream_baskets)
    rows: list[Row] = []
    for order in ORDERS:
        places = positions(order, len(stream.baskets), settings.seed)
        for name, make in RIVALS.items():
            warm_up(make, stream)
            runs = []
            for _ in range(RUNS):
                rival = make(stream)
                rival.load(stream.baskets)
                runs.append(_deletions(rival, places, partial(watch, f"deletions from {order}, {name}")))
            rows += [{"stream": dataset, "order": order, "rival": name} | point for point in curve(runs)]
    return rows


def _additions(rival: Rival, stream: Stream, progress: Progress) -> list[float]:
    seconds = []
    for done, basket in enumerate(stream.baskets, 1):
        seconds.append(rival.add(basket))
        progress(done, len(stream.baskets))
    return seconds


def _deletions(rival: Rival, places: list[int], progress: Progress) -> list[float]:
    seconds = []
    for done, place in enumerate(places, 1):
        seconds.append(rival.delete(place))
        progress(done, len(places))
    return seconds


def positions(order: str, count: int, seed: int) -> list[int]:
    """Where to delete, one after the other, until one basket is left."""
    lengths = range(count, 1, -1)
    if order == "random":
        rng = np.random.default_rng(seed)
        return [int(rng.integers(length)) for length in lengths]
    return [0 if order == "start" else length - 1 for length in lengths]


def warm_up(make: Callable[[Stream], Rival], stream: Stream) -> None:
    """Let caches fill before the clock starts."""
    rival = make(stream)
    rival.load(stream.baskets[:-1][:20])
    rival.add(stream.baskets[-1])
    rival.delete(0)
    rival.delete(1)


def curve(runs: list[list[float]]) -> list[Row]:
    """The points of a curve, from the seconds of the same events in several runs."""
    seconds = np.median(runs, axis=0)
    parts = [part for part in np.array_split(np.arange(len(seconds)), POINTS) if len(part)]
    return [{"events": int(part[-1]) + 1, "ms": float(seconds[part].mean()) * 1e3} for part in parts]


_NOTES = (
    "Retrain: the paper's baseline, dense vectors in NumPy on one core; the multi-hot matrix of the history is ready, "
    "and only the weighted sum over it is timed (by einsum; BLAS on an idle machine is up to twice as fast). Paper's "
    "rules: its incremental and decremental equations, dense, in NumPy. Ours: the public call. Ours, with a "
    "recommendation: that call and the recommendation, end to end.",
    f"Each event is timed in {RUNS} runs and the median is taken; a point is the mean of the events between it and the "
    "point before.",
    "Single-item is the paper's stream: one user, one item, m = 2. Coop-100 is the longest history of 100 real "
    "supermarket customers (3,420 items, m = 7, k = 50), with the other 99 in the index.",
    "Dotted lines mark the paper's claims for the state update, and the median micro-batch of Spark around it (about "
    "120 ms in its authors' result files), which is what a customer of that system waits for.",
)
_WHY_ABOVE = (
    "Why our update lies above the paper's bare rule: the rule changes one dense vector and stops there, while our "
    "call also checks ids, stores the basket and brings the neighbor index up to date, so that the next recommendation "
    "is fresh."
)


def present_additions(frame: pl.DataFrame) -> Section:
    """Curves, and the first and the last point of each as a table."""
    names = frame["stream"].unique(maintain_order=True).to_list()
    figure, axes = plots.panels(1, len(names), 5.2 * len(names) + 1, 5)
    for axis, name in zip(axes, names, strict=True):
        _plot(axis, frame.filter(pl.col("stream") == name), claims.ADDITION_MS)
        axis.set_title(name)
        axis.set_xlabel("baskets added so far")
    plots.legend_below(figure, axes[0], 3)
    tables = (_ends_table(frame, ["stream", "rival"]),)
    return Section(_findings(frame, claims.ADDITION_MS, "addition"), (_WHY_ABOVE, *_NOTES), tables, figure)


def present_deletions(frame: pl.DataFrame) -> Section:
    """A panel per stream and order."""
    names = frame["stream"].unique(maintain_order=True).to_list()
    figure, axes = plots.panels(len(names), len(ORDERS), 14, 4 * len(names) + 0.6)
    cells = [(name, order) for name in names for order in ORDERS]
    for axis, (name, order) in zip(axes, cells, strict=True):
        _plot(axis, frame.filter(pl.col("stream") == name, pl.col("order") == order), claims.DELETION_MS)
        axis.set_title(f"{name}, deletions: {order}")
        axis.set_xlabel("baskets deleted so far")
    plots.legend_below(figure, axes[0], 3)
    tables = (_ends_table(frame, ["stream", "order", "rival"]),)
    return Section(_findings(frame, claims.DELETION_MS, "deletion"), _NOTES, tables, figure)


def _findings(frame: pl.DataFrame, claim: float, event: str) -> tuple[Finding, ...]:
    """Is our curve below the paper's claim, apart from a few points that other programs disturb?"""
    ours = frame.filter(pl.col("rival") == "ours")["ms"]
    below, median = int((ours < claim).sum()), ours.median()
    assert isinstance(median, float)
    text = (
        f"Our median point is {median:.3f} ms per {event}, and {below} of {len(ours)} points lie below the paper's "
        f"{claim:g} ms."
    )
    return (Finding(text, median < claim),)


def _plot(axis: Axes, part: pl.DataFrame, claim_ms: float) -> None:
    for rival in RIVALS:
        curve = part.filter(pl.col("rival") == rival)
        axis.plot(curve["events"], curve["ms"], label=rival, linewidth=1.6, **_STYLES[rival])  # type: ignore[arg-type]
    axis.axhline(claim_ms, color=plots.CLAIM, linestyle=":", label=f"paper's claim, {claim_ms:g} ms")
    micro_batch = f"Spark micro-batch around it, {claims.MICRO_BATCH_MS:g} ms"
    axis.axhline(claims.MICRO_BATCH_MS, color=plots.CLAIM, linestyle="-.", label=micro_batch)
    axis.set_yscale("log")
    axis.set_ylabel("time of an update (ms, log scale)")


def _ends_table(frame: pl.DataFrame, keys: list[str]) -> Table:
    ends = frame.group_by(keys, maintain_order=True).agg(
        pl.col("ms").first().alias("first"),
        pl.col("ms").median().alias("middle"),
        pl.col("ms").last().alias("last"),
        pl.col("events").last(),
    )
    rows = [
        (*row[: len(keys)], *(number(value, 4) for value in row[len(keys) : -1]), number(row[-1], 0))
        for row in ends.iter_rows()
    ]
    header = (*keys, "first point, ms", "median point, ms", "last point, ms", "events")
    return Table("Milliseconds per update", header, rows)
