"""The engine in shops of growing size: `make bench-scale`, or `python -m benchmarks.scale --users 100000`.

The shop is generated: 50,000 items whose popularity follows Zipf's law, and users with 10 baskets of about 9 picks on
average. It is generated once per size and cached in build/scale. Each step runs in its own process, so its memory can
be measured. Times are wall-clock times, as a caller sees them. For the longest call, the processor time of the calling
thread is measured too: other load on the machine and waits for the disk do not affect it.

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
PARAMS = ub.Params()
DURABLE_EVENTS = 20_000
PAUSE = 0.0005  # seconds between the queries of the concurrent reader

console = Console(stderr=True)


class Figure(NamedTuple):
    """A row of the table: name, value, unit, and the required and the desired limit with a million users."""

    name: str
    value: float
    unit: str
    must: float
    aim: float


def shop(users: int) -> Path:
    """Return the file with the purchases of a shop, and generate it if it is missing."""
    path = FOLDER / f"shop-{users}.parquet"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(f"generating a shop of {users:,} users", total=users)
            in_a_process(_make, users, path, each=lambda done: progress.update(task, completed=done))
    return path


def _make(users: int, path: Path, report: Callable[[int], None]) -> None:
    made = generate(users, items=ITEMS, baskets_per_user=10, basket_size=9, progress=lambda done, _: report(done))
    partial = path.with_suffix(".partial")
    made.history.cast(pl.UInt32).write_parquet(partial)
    partial.rename(path)


def in_a_process(function: Callable[..., Any], *arguments: Any, each: Callable[[Any], object] | None = None) -> Any:
    """Run a function in a new process and return its result; `each` is called with its progress messages."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(1, mp_context=context) as pool:
        messages = manager.Queue()
        future = pool.submit(function, *arguments, messages.put)
        future.add_done_callback(lambda _: messages.put(None))
        while (message := messages.get()) is not None:
            if each is not None:
                each(message)
        return future.result()


def resident() -> float:
    """Return the resident bytes of this process, after returning free memory to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return _status("VmRSS")


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def reset_peak() -> None:
    """Reset the peak memory use of this process."""
    Path("/proc/self/clear_refs").write_text("5")


class Times:
    """The wall-clock and processor seconds of calls."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    def add(self, call: Callable[..., object], *arguments: object) -> None:
        """Make a call, and record its times."""
        wall, processor = time.perf_counter(), time.thread_time()
        call(*arguments)
        self.processor.append(time.thread_time() - processor)
        self.wall.append(time.perf_counter() - wall)

    def median(self) -> float:
        """Return the median, in milliseconds."""
        return float(np.median(self.wall)) * 1e3

    def p99(self) -> float:
        """Return the 99th percentile, in milliseconds."""
        return float(np.percentile(self.wall, 99)) * 1e3

    def longest(self) -> tuple[float, float]:
        """Return the longest wall-clock and processor times, in milliseconds."""
        return max(self.wall) * 1e3, max(self.processor) * 1e3


class Reader(threading.Thread):
    """A thread that reads histories continuously, and records the times."""

    def __init__(self, rec: ub.Recommender, users: list[int]) -> None:
        super().__init__()
        self.times = Times()
        self._rec, self._users = rec, users
        self._done = threading.Event()

    def run(self) -> None:
        """Read until stopped."""
        while not self._done.wait(PAUSE):
            self.times.add(self._rec.history, random.choice(self._users))

    def stop(self) -> None:
        """Stop reading."""
        self._done.set()
        self.join()


def fitted(
    path: Path | list[Path], params: ub.Params, goals: tuple[float, float]
) -> tuple[ub.Recommender, list[Figure]]:
    """Fit an engine to a shop, and measure it; the goals are the required and the desired limit in gigabytes."""
    frame = pl.read_parquet(path)
    reset_peak()
    start = time.perf_counter()
    rec = ub.Recommender(params).fit(frame)
    seconds = time.perf_counter() - start
    del frame
    memory = resident()
    gc.freeze()  # as in the service: keeps the garbage collector from scanning the loaded objects
    return rec, [
        Figure("fit", seconds, "s", 25, 15),
        Figure("memory, fitted", memory / 1e9, "GB", *goals),
        Figure("memory, at the peak of fit", _status("VmHWM") / 1e9, "GB", 4.5, 3.5),
    ]


def stay_on(cores: set[int]) -> None:
    """Pin all threads of this process to these cores."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def recommending(rec: ub.Recommender, chance: random.Random) -> list[Figure]:
    """Measure single recommendations on all cores and on one core, for different users."""
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
    """Measure events, and a concurrent reader."""
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
    """Learn baskets: most of known users, one in ten of a new user, one in a hundred with a new item."""
    last = 2**40  # time and basket id: after all others

    def learn(number: int) -> Callable[[], object]:
        user = users + 1 + number if number % 10 == 0 else chance.randint(1, users)
        items = [int(ITEMS * chance.random() ** 3) + 1 for _ in range(chance.randint(4, 14))]
        if number % 100 == 0:
            items.append(ITEMS + 1 + number)
        return lambda: rec.learn(user, items, basket=last + number, time=last + number)

    return beside_a_reader("learn", rec, list(range(1, users + 1)), (learn(number) for number in range(EVENTS)))


def forgetting(rec: ub.Recommender, chance: random.Random, users: int) -> list[Figure]:
    """Forget baskets, items of a user and, one in ten times, the user."""
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


def in_memory(path: Path, users: int, report: Callable[[str], None]) -> list[Figure]:
    """Measure the engine in memory."""
    report("fit")
    rec, figures = fitted(path, PARAMS, (2.3, 1.8))
    chance = random.Random(0)
    report("recommend")
    figures += recommending(rec, chance)
    report("learn")
    figures += learning(rec, chance, users)
    report("forget")
    return figures + forgetting(rec, chance, users)


def pooled(path: Path, report: Callable[[str], None]) -> list[Figure]:
    """Measure the engine with a pool of neighbors."""
    report("fit with a pool")
    rec, (_, memory, _) = fitted(path, PARAMS.changed(pool=POOL), (1.4, 1.0))
    report("recommend with a pool")
    median, *_ = recommending(rec, random.Random(0))
    return [
        Figure("recommend, pool of 20,000, one core: median", median.value, "ms", 1, 0.6),
        Figure("memory, fitted, pool of 20,000", memory.value, "GB", memory.must, memory.aim),
    ]


def saved(path: Path, db: Path, report: Callable[[str], None]) -> list[Figure]:
    """Import a shop into a new database."""
    report("import into a database")
    frame = pl.read_parquet(path)
    start = time.perf_counter()
    with ub.open(db) as rec:
        rec.fit(frame)
    return [Figure("durable: import", time.perf_counter() - start, "s", 100, 50)]


def beside(work: Callable[[], object], call: Callable[[], object]) -> Times:
    """Measure calls while another thread works."""
    times, worker = Times(), threading.Thread(target=work)
    worker.start()
    while worker.is_alive():
        times.add(call)
    return times


def opened(db: Path, users: int, report: Callable[[str], None]) -> list[Figure]:
    """Open the database again, and measure its first events."""
    report("open the database")
    start = time.perf_counter()
    with ub.open(db) as rec:
        seconds = time.perf_counter() - start
        report("learn and forget durably")
        first, learning = Times(), Times()
        first.add(lambda: rec.forget(1))
        baskets = count(2**40)

        def learn() -> None:
            basket = next(baskets)
            rec.learn(random.randint(2, users), [1, 2, 3], basket=basket, time=basket)

        for _ in range(DURABLE_EVENTS):
            learning.add(learn)
        report("back up and verify beside learning")
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
    """Measure all figures of a shop of one size."""
    path = shop(users)
    with console.status("") as status, tempfile.TemporaryDirectory(dir=FOLDER) as folder:

        def run(function: Callable[..., list[Figure]], *arguments: Any) -> list[Figure]:
            figures: list[Figure] = in_a_process(
                function, *arguments, each=lambda step: status.update(f"{users:,} users: {step}")
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
    """Render the table of the page."""
    by_name = [{figure.name: figure for figure in figures} for figures in columns]
    lines = [["users", *(f"{users:,}" for users in sizes)], ["---"] * (1 + len(sizes))]
    for title, names in ROWS.items():
        lines.append([title, *(cell([figures[name] for name in names]) for figures in by_name)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(figures: list[Figure]) -> str:
    """Format figures in one cell, with a common unit after the last of them."""
    *others, last = [(_short(figure.value), figure.unit) for figure in figures]
    same = {unit for _, unit in others} <= {last[1]}
    return " / ".join([*(value if same else f"{value} {unit}" for value, unit in others), " ".join(last)])


def _short(value: float) -> str:
    """Format with two significant digits, or all digits before the point."""
    return f"{value:#.2g}".rstrip(".") if value < 99.5 else f"{value:.0f}"


def drawn(sizes: list[int], columns: list[list[Figure]]) -> str:
    """Draw the growth of some figures as SVG."""
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
    os.environ["_RJEM_MALLOC_CONF"] = "dirty_decay_ms:0,muzzy_decay_ms:0"  # makes Polars return freed memory
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
