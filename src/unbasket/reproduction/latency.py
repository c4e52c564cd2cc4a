"""End-to-end latency: from an event to a recommendation that includes it."""

from time import perf_counter

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from unbasket.datasets import load
from unbasket.domain.ids import Id
from unbasket.engine.recommender import Recommender
from unbasket.evaluation import plots
from unbasket.reproduction import paper
from unbasket.reproduction.section import Finding, Row, Section, StepProgress, Table, number
from unbasket.reproduction.workloads import Settings, params_of

EVENTS = ("learn", "forget")


def run(dataset: str, settings: Settings, step: StepProgress) -> list[Row]:
    """Measure a row per kind of event: the update alone, and with the following recommendation."""
    history = load(dataset).history
    engine = Recommender(params_of(dataset)).fit(history)
    before = engine.digest()
    rng = np.random.default_rng(settings.seed)
    counts = history.group_by("user").agg(pl.col("basket").n_unique()).sort("user")
    users = counts.filter(pl.col("basket") >= 2)["user"].to_list()
    seconds: dict[str, list[tuple[float, float]]] = {event: [] for event in EVENTS}
    _learn_newest(engine, users[0])
    _forget_one(engine, users[0], 0)
    for done in range(settings.latency_events):
        user = users[rng.integers(len(users))]
        seconds["learn"].append(_learn_newest(engine, user))
        seconds["forget"].append(_forget_one(engine, user, int(rng.integers(len(engine.history(user))))))
        step("learning, forgetting, recommending", done + 1, settings.latency_events)
    return [
        {
            "dataset": dataset,
            "users": len(engine),
            "neighbors": engine.params.neighbors,
            "event": event,
            **_percentiles("update", [update for update, _ in seconds[event]]),
            **_percentiles("end_to_end", [both for _, both in seconds[event]]),
            "same_digest_afterwards": engine.digest() == before,
        }
        for event in EVENTS
    ]


def _learn_newest(engine: Recommender, user: Id) -> tuple[float, float]:
    """Time the learning of a user's newest basket, which is first forgotten untimed."""
    newest = engine.history(user)[-1]
    engine.forget(user, basket=newest.basket)
    started = perf_counter()
    engine.learn(user, newest.items, basket=newest.basket, time=newest.time)
    return _times(engine, user, started)


def _forget_one(engine: Recommender, user: Id, position: int) -> tuple[float, float]:
    """Time the forgetting of one of a user's baskets, which is then learned again untimed."""
    basket = engine.history(user)[position]
    started = perf_counter()
    engine.forget(user, basket=basket.basket)
    times = _times(engine, user, started)
    engine.learn(user, basket.items, basket=basket.basket, time=basket.time)
    return times


def _times(engine: Recommender, user: Id, started: float) -> tuple[float, float]:
    updated = perf_counter()
    engine.recommend(user)
    return updated - started, perf_counter() - started


def _percentiles(span: str, seconds: list[float]) -> Row:
    return {f"{span}_p{percent}_ms": float(np.percentile(seconds, percent)) * 1e3 for percent in (50, 99)}


def present(frame: pl.DataFrame) -> Section:
    """Present a table with the paper's figures in the notes, and bars."""
    rows = [
        (
            row["dataset"],
            number(row["users"], 0),
            number(row["neighbors"], 0),
            row["event"],
            f"{row['update_p50_ms']:.3f} ({row['update_p99_ms']:.3f})",
            f"{row['end_to_end_p50_ms']:.3f} ({row['end_to_end_p99_ms']:.3f})",
            "yes" if row["same_digest_afterwards"] else "NO",
        )
        for row in frame.iter_rows(named=True)
    ]
    header = ("data", "users", "k", "event", "update", "update and recommendation", "digest as before")
    notes = (
        "Each event is that of a user drawn at random: the newest basket is learned, and a random basket is forgotten "
        "and learned again, so the model does not change: the digest at the end shows it. End to end means the update "
        "and the recommendation of 10 items from all users' live vectors.",
        f"The paper: {paper.ADDITION_MS:g} ms per addition and less than {paper.DELETION_MS:g} ms per deletion for "
        f"the state update of one customer with ten items, {paper.TAFENG_UPDATE_MS:g} ms on Ta-Feng; the micro-batch "
        f"around it takes {paper.MICRO_BATCH_MS:g} ms on its single-user stream, {paper.TAFENG_MICRO_BATCH_MS:g} ms on "
        "Ta-Feng (medians, its authors' result files), and neighbors are computed later, in batch.",
        "In memory and in one process: neither the paper's figures nor ours include network or disk.",
    )
    table = Table("Milliseconds per event: median (99th percentile)", header, rows)
    return Section(_findings(frame), notes, (table,), _draw(frame))


def _findings(frame: pl.DataFrame) -> tuple[Finding, ...]:
    same = frame["same_digest_afterwards"].all()
    text = "is as before" if same else "is NOT as before"
    slowest = frame.row(by_predicate=pl.col("end_to_end_p50_ms") == pl.col("end_to_end_p50_ms").max(), named=True)
    return (
        Finding(f"When every event has been undone, the digest {text}.", same),
        Finding(
            f"From the event to the fresh recommendation: {slowest['end_to_end_p50_ms']:.2f} ms in the slowest median "
            f"({slowest['event']} on {slowest['dataset']}).",
            None,
        ),
    )


def _draw(frame: pl.DataFrame) -> Figure:
    figure, axes = plots.panels(1, 2, 11, 4.4)
    for axis, event, claim in zip(axes, EVENTS, (paper.ADDITION_MS, paper.DELETION_MS), strict=True):
        measured = frame.filter(pl.col("event") == event)
        positions = np.arange(measured.height)
        for shift, span, alpha in ((-0.2, "update", 1.0), (0.2, "end_to_end", 0.5)):
            bars, label = positions + shift, f"ours, {span.replace('_', ' ')}, median"
            axis.bar(bars, measured[f"{span}_p50_ms"], 0.38, color=plots.OURS, alpha=alpha, label=label)
            label_p99 = "99th percentile" if span == "update" else None
            axis.plot(bars, measured[f"{span}_p99_ms"], "_", color="black", markersize=12, label=label_p99)
        axis.axhline(claim, color=plots.CLAIM, linestyle=":", label="paper's claim, update (0.2 ms, 1 ms)")
        micro_batch = f"Spark micro-batch around it, {paper.MICRO_BATCH_MS:g} ms"
        axis.axhline(paper.MICRO_BATCH_MS, color=plots.CLAIM, linestyle="-.", label=micro_batch)
        axis.set_xticks(positions, measured["dataset"].to_list())
        axis.set_yscale("log")
        axis.set_ylabel("ms (log scale)")
        axis.set_title(f"{event} a basket")
    plots.legend_below(figure, axes[0], 3)
    return figure
