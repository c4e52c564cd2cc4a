"""End to end: from an event that is accepted to the recommendation that shows it."""

from time import perf_counter

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from unbasket.datasets import PAPER_PARAMS, load
from unbasket.evaluation import plots
from unbasket.ids import Id
from unbasket.recommender import Recommender
from unbasket.reproduction import claims
from unbasket.reproduction.section import Row, Section, Table, number
from unbasket.reproduction.settings import Settings
from unbasket.reproduction.streams import SHOP_PARAMS
from unbasket.reproduction.watch import Watch

EVENTS = ("learn", "forget")


def run(dataset: str, settings: Settings, watch: Watch) -> list[Row]:
    """A row per kind of event: the bare update, and with the recommendation that follows."""
    history = load(dataset).history
    engine = Recommender(PAPER_PARAMS.get(dataset, SHOP_PARAMS)).fit(history)
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
        watch("learning, forgetting, recommending", done + 1, settings.latency_events)
    return [
        {
            "dataset": dataset,
            "users": len(engine),
            "neighbors": engine.params.neighbors,
            "event": event,
            "update_p50_ms": _percentile(seconds[event], 0, 50),
            "update_p99_ms": _percentile(seconds[event], 0, 99),
            "end_to_end_p50_ms": _percentile(seconds[event], 1, 50),
            "end_to_end_p99_ms": _percentile(seconds[event], 1, 99),
            "same_digest_afterwards": engine.digest() == before,
        }
        for event in EVENTS
    ]


def _learn_newest(engine: Recommender, user: Id) -> tuple[float, float]:
    """Learn a user's newest basket, which was taken away before the clock runs."""
    newest = engine.history(user)[-1]
    engine.forget(user, basket=newest.basket)
    started = perf_counter()
    engine.learn(user, newest.items, basket=newest.basket, time=newest.time)
    return _times(engine, user, started)


def _forget_one(engine: Recommender, user: Id, position: int) -> tuple[float, float]:
    """Forget one of a user's baskets; it is put back when the clock has stopped."""
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


def _percentile(pairs: list[tuple[float, float]], which: int, percent: int) -> float:
    return float(np.percentile([pair[which] for pair in pairs], percent)) * 1e3


def present(frame: pl.DataFrame) -> Section:
    """A table with the paper's own figures beside, and bars."""
    rows = [
        (
            row["dataset"],
            number(row["users"], 0),
            number(row["neighbors"], 0),
            row["event"],
            *(number(row[name], 3) for name in frame.columns if name.endswith("_ms")),
            "yes" if row["same_digest_afterwards"] else "NO",
        )
        for row in frame.iter_rows(named=True)
    ]
    header = (
        "data", "users", "k", "event", "update, p50 ms", "update, p99 ms", "end to end, p50 ms", "end to end, p99 ms",
        "digest as before all events",
    )  # fmt: skip
    micro_batch = (
        f"{claims.MICRO_BATCH_MS:g} ms on its single-user stream, {claims.TAFENG_MICRO_BATCH_MS:g} ms on TaFeng"
    )
    notes = (
        "Each event is a random user's: his newest basket is learnt, and a random one of his baskets is forgotten (and "
        "put back, so that the model stays as it was: the digest at the end shows it). End to end is the update and "
        "the recommendation of 10 items from all users' live vectors.",
        f"The paper: {claims.ADDITION_MS:g} ms per addition and less than {claims.DELETION_MS:g} ms per deletion for "
        f"the state update of one customer with ten items, {claims.TAFENG_UPDATE_MS:g} ms on TaFeng; the micro-batch "
        f"around it takes {micro_batch} (medians, its authors' result files), and neighbors are computed later, "
        "in batch.",
        "In memory and in one process: no network and no disk, on either side of the comparison.",
    )
    return Section(notes, (Table("Milliseconds per event", header, rows),), _draw(frame))


def _draw(frame: pl.DataFrame) -> Figure:
    figure, axes = plots.panels(1, 2, 11, 4.4)
    for axis, event, claim in zip(axes, EVENTS, (claims.ADDITION_MS, claims.DELETION_MS), strict=True):
        part = frame.filter(pl.col("event") == event)
        places = range(part.height)
        for shift, what, alpha in ((-0.2, "update", 1.0), (0.2, "end_to_end", 0.5)):
            bars = [place + shift for place in places]
            axis.bar(
                bars, part[f"{what}_p50_ms"], 0.38, color=plots.OURS, alpha=alpha,
                label=f"ours, {what.replace('_', ' ')}, median",
            )  # fmt: skip
            label = "99th percentile" if what == "update" else None
            axis.plot(bars, part[f"{what}_p99_ms"], "_", color="black", markersize=12, label=label)
        axis.axhline(claim, color=plots.CLAIM, linestyle=":", label="paper's claim, update (0.2 ms, 1 ms)")
        micro_batch = f"Spark micro-batch around it, {claims.MICRO_BATCH_MS:g} ms"
        axis.axhline(claims.MICRO_BATCH_MS, color=plots.CLAIM, linestyle="-.", label=micro_batch)
        axis.set_xticks(list(places), part["dataset"].to_list())
        axis.set_yscale("log")
        axis.set_ylabel("ms (log scale)")
        axis.set_title(f"{event} a basket")
    plots.legend_below(figure, axes[0], 3)
    return figure
