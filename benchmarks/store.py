"""The durable engine beside bare SQLite doing the same writes, in one run: `make bench`.

Both work on the same disk, acknowledge synced writes only (bare SQLite by `synchronous=FULL`), and alternate in short
runs, so other load on the disk slows both alike; both start with an empty write-ahead log. Bare SQLite is the usual
solution: one connection, one lock, a transaction per event; to forget, it zeroes the row, writes as many bytes as a
receipt has, and truncates the log, durably. It has no model, no signatures and no verification.
"""

import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import unbasket as ub
from unbasket.datasets import load
from unbasket.domain.ids import Id
from unbasket.files import fsync

CALLERS = (1, 16)
RUNS = 25
EVENTS = 256  # in a run
LATER = 10**12
RECEIPT = os.urandom(700)  # about the size of ours


class Bare:
    """A table of baskets in SQLite, durable and erased the same way."""

    def __init__(self, path: Path) -> None:
        self._log = path.with_name(path.name + "-wal")
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "CREATE TABLE baskets (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
            "CREATE TABLE receipts (id INTEGER PRIMARY KEY, body BLOB NOT NULL)",
        ):
            self._connection.execute(statement)
        self._lock = threading.Lock()

    def load(self, bodies: list[tuple[int, bytes]]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO baskets VALUES (?, ?)", bodies)
        self._connection.execute("COMMIT")
        self.empty_log()

    def empty_log(self) -> None:
        assert self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        fsync(self._log)

    def insert(self, row: int, body: bytes) -> None:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("INSERT INTO baskets VALUES (?, ?)", (row, body))
            self._connection.execute("COMMIT")

    def zero(self, row: int) -> None:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("UPDATE baskets SET body = zeroblob(length(body)) WHERE id = ?", (row,))
            self._connection.execute("INSERT INTO receipts (body) VALUES (?)", (RECEIPT,))
            self._connection.execute("COMMIT")
            self.empty_log()


class Pair(NamedTuple):
    """Events per second of both, and ours as a share of the other, each in the median run."""

    ours: float
    bare: float
    share: float


def rate(work: Callable[[int], object], numbers: range, callers: int) -> float:
    """Return the events per second with `callers` threads."""

    def run(first: int) -> None:
        for number in numbers[first::callers]:
            work(number)

    threads = [threading.Thread(target=run, args=(first,)) for first in range(callers)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(numbers) / (time.perf_counter() - start)


def alternate(ours: Callable[[int], object], bare: Callable[[int], object], first: int, callers: int) -> Pair:
    """Measure both in alternating runs."""
    runs = [range(first + i * EVENTS, first + (i + 1) * EVENTS) for i in range(RUNS)]
    rates = [(rate(ours, numbers, callers), rate(bare, numbers, callers)) for numbers in runs]
    return Pair(*map(median, zip(*((ours, bare, ours / bare) for ours, bare in rates), strict=True)))


def writes(folder: Path, table: Table) -> None:
    """Measure learns and forgets with The Complete Journey loaded."""
    data = load("completejourney")
    rec, bare = ub.open(folder / "journey.db").fit(data.history), Bare(folder / "bare.db")
    rec.digest()
    users = rec.users()
    bare.load([(row, os.urandom(50)) for row in range(1, 148_150)])
    items: list[Id] = [4, 8, 15, 16, 23, 42]
    body = os.urandom(36)  # the size of our rows
    rec.learn(0, items, basket=1)
    rec.forget(0)

    def learn(number: int) -> None:
        rec.learn(users[number % len(users)], items, basket=-number, time=LATER + number)

    def forget(number: int) -> None:
        rec.forget(users[number % len(users)], basket=-number)

    first = 200_000
    for callers in CALLERS:
        pair = alternate(learn, lambda number: bare.insert(number, body), first, callers)
        add(table, f"learns per second, {callers} callers", pair)
        pair = alternate(forget, bare.zero, first, callers)
        add(table, f"forgets per second, {callers} callers", pair)
        first += RUNS * EVENTS
    rec.close()


def add(table: Table, work: str, pair: Pair) -> None:
    """Add a row; the goal is 70 %."""
    reached = "[green]yes[/]" if pair.share >= 0.7 else "[red]no[/]"
    table.add_row(work, f"{pair.ours:,.0f}", f"{pair.bare:,.0f}", f"{pair.share:.0%}", "70 %", reached)


def opening(folder: Path, table: Table) -> None:
    """Measure the opening of The Complete Journey, up to a ready index."""
    data = load("completejourney")
    path = folder / "opened.db"
    start = time.perf_counter()
    with ub.open(path) as rec:
        rec.fit(data.history)
    importing = time.perf_counter() - start
    ours, bare = [], []
    for _ in range(3):
        start = time.perf_counter()
        rec = ub.open(path)
        ours.append(time.perf_counter() - start)
        rec.close()
        connection = sqlite3.connect(path)
        start = time.perf_counter()
        rows = len(connection.execute("SELECT * FROM baskets").fetchall())
        bare.append(time.perf_counter() - start)
        connection.close()
    seconds = median(ours)
    table.add_row(
        f"reopening The Complete Journey, {rows:,} baskets, rows per second",
        f"{rows / seconds:,.0f} ({seconds:.1f} s)",
        f"{rows / median(bare):,.0f} (SELECT *)",
        f"{median(bare) / seconds:.0%}",
        "6 s",
        "[green]yes[/]" if seconds <= 6 else "[red]no[/]",
    )
    table.add_row("importing it, seconds", f"{importing:.1f}", "", "", "", "")
    table.add_row("bytes of the file per purchase", f"{path.stat().st_size / len(data.history):.1f}", "", "", "", "")


def main() -> None:
    """Run everything and print the table."""
    table = Table("work", "ours", "bare SQLite", "share", "must reach", "", title="Unbasket: the durable store")
    with (
        tempfile.TemporaryDirectory(dir=os.environ.get("UNBASKET_BENCH_DIR")) as folder,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("writing", total=2)
        writes(Path(folder), table)
        progress.update(task, advance=1, description="reopening")
        opening(Path(folder), table)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
