"""Throughput on Spark, beside another version of this package: `python benchmarks/spark.py --against FOLDER`.

FOLDER is a checkout of that version with its core built in place, by default none. Each version is a process of its
own, on the same shop: users with 5 baskets of 6 items, half of the events learns and the others forgets of what was
learned one batch before, each event of another user. The versions take turns. The first turn of each, in which Java
compiles, and the first batch of every turn, which starts the stream, do not count. Wall time is that of Spark's
trigger. Processor time and bytes written are those of the driver, the JVM and the Python workers.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console

say = Console(highlight=False, soft_wrap=True).print

BASKETS, ITEMS, SIZE = 5, 5000, 6  # of a user, of the shop, of a basket
CORES = 2
CASES = [(10_000, 100), (100_000, 10_000), (100_000, 50_000), (1_000_000, 10_000)]  # users, events in a batch
HERE = Path(__file__).resolve().parents[1]


class Batch(NamedTuple):
    """A micro-batch: wall seconds, processor seconds, bytes written."""

    wall: float
    cpu: float
    written: int


def usage() -> tuple[float, int]:
    """Return processor seconds and bytes written of this process and all of its descendants."""
    parents, cpu, written = {}, {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            lines = dict(line.split(": ") for line in (process / "io").read_text().splitlines())
        except OSError:  # the process has just ended
            continue
        number = int(process.name)
        parents[number], written[number] = int(fields[1]), int(lines["write_bytes"])
        cpu[number] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    found, more = set[int](), {os.getpid()}
    while more:
        found |= more
        more = {number for number, parent in parents.items() if parent in found} - found
    return sum(cpu.get(number, 0) for number in found), sum(written.get(number, 0) for number in found)


def write_events(folder: Path, users: int, events: int, files: int) -> None:
    """Write a file for each batch, in which each user occurs once; histories do not grow."""
    chance = random.Random(1)
    folder.mkdir(parents=True)
    learned: dict[int, int] = {}
    for number in range(files):
        forgets = [{"event": "forget", "user": user, "basket": basket} for user, basket in learned.items()]
        chosen = chance.sample([user for user in range(users) if user not in learned], min(events // 2, users // 2))
        learned = {user: 10**9 + number * events + i for i, user in enumerate(chosen)}
        new = [
            {"event": "learn", "user": user, "basket": basket, "items": some_items(chance), "time": basket}
            for user, basket in learned.items()
        ]
        file = folder / f"{number:03d}.json"
        file.write_text("\n".join(map(json.dumps, new + forgets)))
        os.utime(file, (number + 1, number + 1))


def some_items(chance: random.Random) -> list[int]:
    return [chance.randrange(ITEMS) for _ in range(SIZE)]


class Worker:
    """A version in this process: a session, and one stream for each shop."""

    def __init__(self, folder: Path, sink: bool) -> None:
        from unbasket import Params, spark

        self._lib: Any = spark
        self._params, self._folder, self._sink = Params.paper("tafeng"), folder, sink
        settings = {"spark.driver.memory": "4g", "spark.log.level": "OFF"}
        self._session = spark.session(f"local[{CORES}]", work=str(folder / "work"), settings=settings)

    def load(self, users: int, events: str) -> float:
        """Load the history of all users, for a stream of events; return the seconds."""
        items = ", ".join(f"pmod(hash(id, {number}), {ITEMS})" for number in range(SIZE))
        columns = ("id as basket", f"cast(array({items}) as array<bigint>) as items", "id as time")
        history = self._session.range(users * BASKETS).selectExpr(f"id % {users} as user", *columns)
        start = time.perf_counter()
        if self._is_earlier:
            self._lib.load(history, self._params).write.parquet(self._checkpoint(events) + "-loaded")
        else:
            self._lib.load(history, self._params, checkpoint=self._checkpoint(events), shards=CORES)
        return time.perf_counter() - start

    @property
    def _is_earlier(self) -> bool:
        """Whether this is a version with a state store, before the state became files."""
        return not hasattr(self._lib, "State")

    def _checkpoint(self, events: str) -> str:
        return str(self._folder / Path(events).name)

    def run(self, events: str, batches: int) -> list[Batch]:
        """Run batches of a stream, after the first one, and stop it."""
        lib, loaded = self._lib, {}
        source = lib.read_files(self._session, events, lib.event_schema("long", "long", "long"), most=1)
        if self._is_earlier:
            loaded = {"loaded": self._session.read.parquet(self._checkpoint(events) + "-loaded")}
        stream = lib.maintain(source, self._params, checkpoint=self._checkpoint(events), **loaded)
        query = stream.into(_discard if self._sink or self._is_earlier else None, every="0 seconds")
        found: list[Batch] = []
        newest, before = -1, usage()
        while len(found) <= batches:
            time.sleep(0.01)
            assert query.isActive, query.exception()
            last = query.lastProgress
            if last is not None and last.batchId > newest and last.sources[0].numInputRows:
                newest, now = last.batchId, usage()
                wall = last.durationMs["triggerExecution"] / 1000
                found.append(Batch(wall, now[0] - before[0], now[1] - before[1]))
                before = now
        query.stop()
        return found[1:]


def _discard(frame: Any, _: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def serve(folder: Path, sink: bool) -> None:
    """Answer requests for `load` and `run`, a line of JSON each."""
    worker = Worker(folder, sink)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        sys.stdout.write(json.dumps(getattr(worker, name)(*arguments)) + "\n")
        sys.stdout.flush()


class Version:
    """A version in a process of its own."""

    def __init__(self, tree: Path, folder: Path, *, sink: bool = False) -> None:
        folder.mkdir()
        command = [sys.executable, __file__, "--serve", str(folder), *(["--sink"] if sink else [])]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        pipe = subprocess.PIPE
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                command, env=environment, stdin=pipe, stdout=pipe, stderr=log, text=True, start_new_session=True
            )
        self._log = folder / "log"

    def call(self, *request: object) -> Any:
        """Let the process do something; return the result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, self._log.read_text()[-2000:]
        return json.loads(answer)

    def stop(self) -> None:
        """End the process, with its JVM and workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def measure(
    versions: dict[str, Version], folder: Path, cases: list[tuple[int, int]], warm_up: int, batches: int, runs: int
) -> None:
    """Let the versions take turns, and print their batches."""
    for users, events in cases:
        shop = folder / f"events-{users}-{events}"
        write_events(shop, users, events, warm_up + 1 + runs * (batches + 2))
        for name, version in versions.items():
            seconds = version.call("load", users, str(shop))
            say(f"{users:,} users loaded, {name}: {users * BASKETS / seconds:,.0f} baskets/s")
        found: dict[str, list[Batch]] = {name: [] for name in versions}
        for turn in range(runs + 1):
            for name, version in versions.items():
                timed = version.call("run", str(shop), batches if turn else warm_up)
                found[name] += [Batch(*batch) for batch in timed] if turn else []
        report(found, users, events)


def report(found: dict[str, list[Batch]], users: int, events: int) -> None:
    """Print a line for each version, by the fastest batch, since noise only adds, and by medians."""
    first = next(iter(found.values()))
    for name, batches in found.items():
        wall, cpu = min(batch.wall for batch in batches), median(batch.cpu for batch in batches)
        written = median(batch.written for batch in batches)
        ratios = [
            min(batch.wall for batch in first) / wall,
            median(batch.cpu for batch in first) / cpu,
            median(batch.written for batch in first) / max(written, 1),
        ]
        say(
            f"{users:,} users, batches of {events:,}, {name}: fastest {wall:.2f} s, {events / wall:,.0f} events/s; "
            f"median {median(batch.wall for batch in batches):.2f} s, {cpu:.2f} s of processor, {written / 1e6:.1f} MB"
            f"; {ratios[0]:.1f}, {ratios[1]:.1f} and {ratios[2]:.1f} times as good as {next(iter(found))}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="a tree of another version, with its core built")
    parser.add_argument("--case", type=int, nargs=2, action="append", metavar=("USERS", "EVENTS"))
    parser.add_argument("--warm-up", type=int, default=12, help="batches of each version in its first turn")
    parser.add_argument("--batches", type=int, default=4, help="of each version in a turn")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--sink", action="store_true", help="also compute the changes of vectors, and discard them")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.sink)
        return
    folder = Path(tempfile.mkdtemp(prefix="unbasket-spark-"))
    trees = {"earlier": given.against} if given.against else {}
    versions = {name: Version(tree, folder / name) for name, tree in trees.items()}
    versions["this"] = Version(HERE, folder / "this")
    if given.sink:
        versions["this, with a sink"] = Version(HERE, folder / "sink", sink=True)
    try:
        cases = [(case[0], case[1]) for case in given.case or CASES]
        measure(versions, folder, cases, given.warm_up, given.batches, given.runs)
    finally:
        for version in versions.values():
            version.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
