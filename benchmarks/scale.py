"""The engine in a shop that grows: `make bench-scale`, or `python -m benchmarks.scale --users 100000`.

The shop is generated: 50,000 items whose popularity follows Zipf's law, and users with 10 baskets of about 9 picks on
average. It is made once per size and kept in build/scale. Each part of the measurement has a process of its own, whose
memory is that part's. A call's time is the wall clock's, as a caller sees it; beside the longest stands the processor
time of the calling thread in its most expensive call, which other load on the machine, or a wait for the disk, does not
lengthen.

`make bench-scale` writes the table of docs/engine.md and its figure.
"""

import argparse
import ctypes
import gc
import multiprocessing
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import unbasket as ub
from benchmarks import pages
from unbasket.datasets import generate
from unbasket.evaluation import plots

SIZES = (10_000, 100_000, 1_000_000)
FOLDER = Path("build/scale")
ITEMS = 50_000
QUERIES = 1_000
EVENTS = 100_000
POOL = 20_000
PARAMS = ub.Params.paper("tafeng")
DURABLE_EVENTS = 20_000
PAUSE = 0.0005  # seconds between the questions of the reader beside the events

console = Console(stderr=True)


class Figure(NamedTuple):
    """One line of the table: what was measured, the figure, and what it must be and should be with a million users."""

    name: str
    value: float
    unit: str
    must: float
    aim: float


def shop(users: int) -> Path:
    """The file with the purchases of a shop, made now if there is none."""
    path = FOLDER / f"shop-{users}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(f"making a shop of {users:,} users", total=users)
            in_a_process(_make, users, path, each=lambda done: progress.update(task, completed=done))
    return path


def _make(users: int, path: Path, tell: Callable[[int], None]) -> None:
    made = generate(users, items=ITEMS, baskets_per_user=10, basket_size=9, progress=lambda done, _: tell(done))
    partial = path.with_suffix(".partial")
    made.history.cast(pl.UInt32).write_parquet(partial)
    partial.rename(path)


def in_a_process(function: Callable[..., Any], *arguments: Any, each: Callable[[Any], object] | None = None) -> Any:
    """What a function returns in a new process; `each` is called with what it tells meanwhile."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(1, mp_context=context) as pool:
        told = manager.Queue()
        future = pool.submit(function, *arguments, told.put)
        future.add_done_callback(lambda _: told.put(None))
        while (news := told.get()) is not None:
            if each is not None:
                each(news)
        return future.result()


def resident() -> float:
    """Bytes of this process in memory, after giving back all that is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def forget_the_peak() -> None:
    """Let the highest memory use of this process be that from now on."""
    Path("/proc/self/clear_refs").write_text("5")


class Times:
    """The seconds that calls took, on the wall's clock and on the processor."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def add(self, call: Callable[..., object], *arguments: object) -> None:
        """Make a call, and note its times."""
        wall, processor = time.perf_counter(), time.thread_time()
        call(*arguments)
        self.processor.append(time.thread_time() - processor)
        self.wall.append(time.perf_counter() - wall)

    def median(self) -> float:
        """The median, in milliseconds."""
        return float(np.median(self.wall)) * 1e3

    def p99(self) -> float:
        """What 99 of 100 calls stay below, in milliseconds."""
        return float(np.percentile(self.wall, 99)) * 1e3

    def longest(self) -> tuple[float, float]:
        """The longest, by either clock, in milliseconds."""
        return max(self.wall) * 1e3, max(self.processor) * 1e3


class Reader(threading.Thread):
    """Asks for histories all the time, and notes how long the answers took."""

    def __init__(self, rec: ub.Recommender, users: list[int]) -> None:
        super().__init__()
        self.times = Times()
        self._rec, self._users = rec, users
        self._done = threading.Event()

    def run(self) -> None:
        """Ask until told to stop."""
        while not self._done.wait(PAUSE):
            self.times.add(self._rec.history, random.choice(self._users))

    def stop(self) -> None:
        """Ask no more."""
        self._done.set()
        self.join()


def fitted(path: Path, params: ub.Params, goals: tuple[float, float]) -> tuple[ub.Recommender, list[Figure]]:
    """An engine with a shop, and what it took; the goals are gigabytes that it must stay below, and should."""
    frame = pl.read_parquet(path)
    forget_the_peak()
    start = time.perf_counter()
    rec = ub.Recommender(params).fit(frame)
    seconds = time.perf_counter() - start
    del frame
    memory = resident()
    gc.freeze()  # as the service does: the garbage collector need not look at what was loaded again and again
    return rec, [
        Figure("fit", seconds, "s", 25, 15),
        Figure("memory, fitted", memory / 1e9, "GB", *goals),
        Figure("memory, at the peak of fit", _status("VmHWM") / 1e9, "GB", 4.5, 3.5),
    ]


def stay_on(cores: set[int]) -> None:
    """Let this process compute on these cores only, with all its threads."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def recommending(rec: ub.Recommender, chance: random.Random) -> list[Figure]:
    """Recommendations for users, one at a time, with one core and with all that there are, each of others."""
    first, *users = chance.sample(rec.users(), 2 * QUERIES + 1)
    rec.recommend(first)
    all_cores, one_core, cores = Times(), Times(), os.sched_getaffinity(0)
    for user in users[:QUERIES]:
        all_cores.add(rec.recommend, user)
    stay_on({min(cores)})
    for user in users[QUERIES:]:
        one_core.add(rec.recommend, user)
    stay_on(cores)
    return [
        Figure("recommend, one core: median", one_core.median(), "ms", 12, 9),
        Figure("recommend, one core: 99 of 100 within", one_core.p99(), "ms", 40, 25),
        Figure("recommend, two cores: median", all_cores.median(), "ms", 8, 5),
    ]


def beside_a_reader(
    name: str, rec: ub.Recommender, users: list[int], calls: Iterable[Callable[[], object]]
) -> list[Figure]:
    """The times of events, and of a reader's questions meanwhile."""
    reader, times = Reader(rec, users), Times()
    reader.start()
    for call in calls:
        times.add(call)
    reader.stop()
    return [
        Figure(f"{name}: median", times.median(), "ms", 0.1, 0.05),
        Figure(f"{name}: longest", times.longest()[0], "ms", 10, 3),
        Figure(f"{name}: longest, on the processor", times.longest()[1], "ms", 10, 3),
        Figure(f"a reader beside {name}: longest", reader.times.longest()[0], "ms", 10, 3),
    ]


def learning(rec: ub.Recommender, chance: random.Random, users: int) -> list[Figure]:
    """New baskets: most of users that are known, one in ten of a new user, one in a hundred with a new item."""
    last = 2**40  # time and basket id: behind all others

    def learn(number: int) -> Callable[[], object]:
        user = users + 1 + number if number % 10 == 0 else chance.randint(1, users)
        items = [int(ITEMS * chance.random() ** 3) + 1 for _ in range(chance.randint(4, 14))]
        if number % 100 == 0:
            items.append(ITEMS + 1 + number)
        return lambda: rec.learn(user, items, basket=last + number, time=last + number)

    return beside_a_reader("learn", rec, list(range(1, users + 1)), (learn(number) for number in range(EVENTS)))


def forgetting(rec: ub.Recommender, chance: random.Random, users: int) -> list[Figure]:
    """Baskets, items of a user, and one in ten times the user."""
    present = chance.sample(rec.users(), min(EVENTS, users) // 2)
    kept = list({*range(1, users + 1)}.difference(present))

    def forget(number: int) -> Callable[[], object]:
        user = present[number % len(present)]
        history = rec.history(user) if user in rec else []
        if number % 10 == 0 or not history:
            return lambda: rec.forget(user)
        basket = chance.choice(history)
        if number % 2:
            return lambda: rec.forget(user, basket=basket.basket)
        return lambda: rec.forget(user, item=basket.items[0])

    return beside_a_reader("forget", rec, kept, (forget(number) for number in range(min(EVENTS, users))))


def in_memory(path: Path, users: int, tell: Callable[[str], None]) -> list[Figure]:
    """The engine in memory."""
    tell("fit")
    rec, figures = fitted(path, PARAMS, (2.3, 1.8))
    chance = random.Random(0)
    tell("recommend")
    figures += recommending(rec, chance)
    tell("learn")
    figures += learning(rec, chance, users)
    tell("forget")
    return figures + forgetting(rec, chance, users)


def pooled(path: Path, tell: Callable[[str], None]) -> list[Figure]:
    """The engine with a pool of neighbors."""
    tell("fit with a pool")
    rec, (_, memory, _) = fitted(path, PARAMS.changed(pool=POOL), (1.4, 1.0))
    tell("recommend with a pool")
    median, *_ = recommending(rec, random.Random(0))
    return [
        Figure("recommend, pool of 20,000, one core: median", median.value, "ms", 1, 0.6),
        Figure("memory, fitted, pool of 20,000", memory.value, "GB", memory.must, memory.aim),
    ]


def saved(path: Path, db: Path, tell: Callable[[str], None]) -> list[Figure]:
    """A new database with a shop."""
    tell("import into a database")
    frame = pl.read_parquet(path)
    start = time.perf_counter()
    with ub.open(db) as rec:
        rec.fit(frame)
    return [Figure("durable: import", time.perf_counter() - start, "s", 100, 50)]


def beside(work: Callable[[], object], call: Callable[[], object]) -> Times:
    """The times of calls while another thread does its work."""
    times, worker = Times(), threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        times.add(call)
    return times


def opened(db: Path, users: int, tell: Callable[[str], None]) -> list[Figure]:
    """The same database, opened again, and its first events."""
    tell("open the database")
    start = time.perf_counter()
    with ub.open(db) as rec:
        seconds = time.perf_counter() - start
        tell("learn and forget durably")
        first, learning = Times(), Times()
        first.add(lambda: rec.forget(1))
        baskets = count(2**40)

        def learn() -> None:
            basket = next(baskets)
            rec.learn(random.randint(2, users), [1, 2, 3], basket=basket, time=basket)

        for _ in range(DURABLE_EVENTS):
            learning.add(learn)
        tell("back up and verify beside learning")
        copying = beside(lambda: rec.backup(db.with_name("copy.db")), learn)
        verifying = beside(lambda: rec.verify(2), learn)
        return [
            Figure("durable: open", seconds, "s", 30, 15),
            Figure("durable: memory, opened", resident() / 1e9, "GB", 2.3, 1.8),
            Figure("durable: first forget", first.longest()[0], "ms", 20, 5),
            Figure("durable learn: median", learning.median(), "ms", 1, 0.5),
            Figure("durable learn: longest, on the processor", learning.longest()[1], "ms", 20, 10),
            Figure("durable learn beside a backup: longest", copying.longest()[0], "ms", 100, 20),
            Figure("durable learn beside verify of a user: longest", verifying.longest()[0], "ms", 100, 20),
        ]


def measured(users: int) -> list[Figure]:
    """All figures of a shop of one size."""
    path = shop(users)
    with console.status("") as status, tempfile.TemporaryDirectory(dir=FOLDER) as folder:

        def run(function: Callable[..., list[Figure]], *arguments: Any) -> list[Figure]:
            figures: list[Figure] = in_a_process(
                function, *arguments, each=lambda part: status.update(f"{users:,} users: {part}")
            )
            return figures

        db = Path(folder, "shop.db")
        return run(in_memory, path, users) + run(pooled, path) + run(saved, path, db) + run(opened, db, users)


ROWS = {
    "fit": ("fit",),
    "memory, fitted / at the peak of fit, the frame included": ("memory, fitted", "memory, at the peak of fit"),
    "recommend, one core: median / 99 of 100 within": (
        "recommend, one core: median",
        "recommend, one core: 99 of 100 within",
    ),
    "recommend, two cores: median": ("recommend, two cores: median",),
    f"learn: median / longest of {EVENTS:,}": ("learn: median", "learn: longest"),
    "forget: median / longest": ("forget: median", "forget: longest"),
    "a reader's longest wait beside learns / forgets": (
        "a reader beside learn: longest",
        "a reader beside forget: longest",
    ),
    f"recommend, pool of {POOL:,}: median / memory": (
        "recommend, pool of 20,000, one core: median",
        "memory, fitted, pool of 20,000",
    ),
    "durable: import / open / memory, opened": ("durable: import", "durable: open", "durable: memory, opened"),
    "durable: first forget after opening / learn, median": ("durable: first forget", "durable learn: median"),
    f"durable learn, longest of {DURABLE_EVENTS:,}, on the processor": ("durable learn: longest, on the processor",),
    "the same with its wait for the disk, beside a backup / `verify` of a user": (
        "durable learn beside a backup: longest",
        "durable learn beside verify of a user: longest",
    ),
}
"""The rows of the page's table, and the figures of each."""


def written(sizes: list[int], columns: list[list[Figure]]) -> str:
    """The table of the page."""
    by_name = [{figure.name: figure for figure in figures} for figures in columns]
    lines = [["users", *(f"{users:,}" for users in sizes)], ["---"] * (1 + len(sizes))]
    for title, names in ROWS.items():
        lines.append([title, *(_cell([figures[name] for name in names]) for figures in by_name)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(figures: list[Figure]) -> str:
    """Figures in one cell; with the unit behind the last of them, if it is the same for all."""
    *others, last = [(_short(figure.value), figure.unit) for figure in figures]
    same = {unit for _, unit in others} <= {last[1]}
    return " / ".join([*(value if same else f"{value} {unit}" for value, unit in others), " ".join(last)])


def _short(value: float) -> str:
    """Two digits, or all of them before the point."""
    return f"{value:#.2g}".rstrip(".") if value < 99.5 else f"{value:.0f}"


def drawn(sizes: list[int], columns: list[list[Figure]]) -> str:
    """The growth of some figures as an SVG drawing."""
    values = {figures[0].name: [figure.value for figure in figures] for figures in zip(*columns, strict=True)}
    figure, (reading, writing, memory) = plots.panels(1, 3, 10, 3.4)
    for axis, title, unit, names in (
        (
            reading,
            "a recommendation",
            "ms",
            ("recommend, one core: median", "recommend, pool of 20,000, one core: median"),
        ),
        (writing, "an event", "ms", ("learn: median", "learn: longest, on the processor")),
        (memory, "memory", "GB", ("memory, fitted", "memory, fitted, pool of 20,000")),
    ):
        for name, color, label in zip(names, (plots.OURS, plots.PAPER), LABELS[title], strict=True):
            axis.loglog(sizes, values[name], marker="o", color=color, label=label)
        axis.set(title=title, xlabel="users", ylabel=unit)
        axis.legend(frameon=False)
    return plots.svg(figure)


LABELS = {
    "a recommendation": ("among all", "pool of 20,000"),
    "an event": ("learn, median", "longest of 100,000"),
    "memory": ("among all", "pool of 20,000"),
}


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=SIZES, help="sizes of shops")
    parser.add_argument("--page", type=Path, help="where to write the table, between comments that say so")
    parser.add_argument("--figure", type=Path, help="where to draw the growth, as SVG")
    arguments = parser.parse_args()
    sizes: list[int] = arguments.users
    os.environ["_RJEM_MALLOC_CONF"] = "dirty_decay_ms:0,muzzy_decay_ms:0"  # Polars gives back what it frees
    columns = [measured(users) for users in sizes]
    table = Table("", *(f"{users:,}" for users in sizes), "must", "aim", title="Unbasket: a shop that grows")
    for figures in zip(*columns, strict=True):
        name, _, unit, must, aim = figures[0]
        values = [f"[{'green' if f.value <= must else 'red'}]{f.value:.3g} {unit}[/]" for f in figures]
        table.add_row(name, *values, f"{must:g} {unit}", f"{aim:g} {unit}")
    Console(width=max(120, console.width)).print(table)
    if arguments.page:
        pages.write(arguments.page, "benchmarks/scale.py", written(sizes, columns))
    if arguments.figure:
        arguments.figure.write_text(drawn(sizes, columns))


if __name__ == "__main__":
    main()
