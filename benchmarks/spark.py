"""Throughput on Spark: the initial load, streaming with more and more users in state, and who the time goes to.

Beside our processor, in the same run, one that does nothing: it reads and writes states and vectors of the same size.
The difference is what our code costs; `direct` is the same code in a loop, without Spark.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from pyspark.sql import DataFrame, Row, SparkSession
from rich.console import Console

from unbasket import Params
from unbasket.events import Learn
from unbasket.spark import event_schema, load, maintain, read_files, session, stream
from unbasket.spark.processor import Maintainer
from unbasket.spark.updating import Update, update_states

say = Console(highlight=False, soft_wrap=True).print

PARAMS = Params()
BASKETS, ITEMS, SIZE = 5, 5000, 6  # of a user, of the shop, of a basket


class NoOp(Maintainer):
    """Does to the state what ours does, without a model: as many calls, as many bytes."""

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803, ARG002
        """All events of one user in this batch."""
        count = BASKETS * SIZE
        for row in {bytes(row["key"]): row for row in rows}.values():
            held = self._orders.getValue((row["key"],))
            self._orders.updateValue((row["key"],), (bytes(held[0]) if held else b"",))
            yield Row(user=row["user"], change="updated", items=[*range(count)], weights=[0.5] * count, reason=None)


def history(spark: SparkSession, users: int) -> DataFrame:
    """Orders of so many users."""
    items = ", ".join(f"pmod(hash(id, {number}), {ITEMS})" for number in range(SIZE))
    columns = (f"id % {users} as user", "id as basket", f"cast(array({items}) as array<bigint>) as items", "id as time")
    return spark.range(users * BASKETS).selectExpr(*columns)


def write_events(folder: Path, users: int, events: int, files: int) -> None:
    chance = random.Random(1)
    folder.mkdir()
    for number in range(files):
        lines = []
        for i in range(events):
            items = [chance.randrange(ITEMS) for _ in range(SIZE)]
            place = 10**9 + number * events + i
            event = {"event": "learn", "user": chance.randrange(users), "basket": place, "items": items, "time": place}
            lines.append(json.dumps(event))
        (folder / f"{number:03d}.json").write_text("\n".join(lines))


def streamed(spark: SparkSession, processor: type, folder: Path, name: str, events: int) -> tuple[float, float]:
    """Seconds of the batch that takes the loaded users, and the median of the later ones."""
    source = read_files(spark, str(folder / "events"), event_schema("long", "long", "long"), most=1)
    loaded = spark.read.parquet(str(folder / "loaded"))
    with patch.object(stream, "Maintainer", processor):
        changes = maintain(source, PARAMS, checkpoint=str(folder / name), loaded=loaded)
    query = changes.into(lambda frame, _: frame.write.format("noop").mode("overwrite").save(), every="0 seconds")
    seconds: list[float] = []
    for progress in stream.watch(query):
        if progress is not None and progress.numInputRows:
            assert progress.numInputRows <= events
            seconds.append(progress.durationMs["triggerExecution"] / 1000)
        elif progress is not None:
            break
    query.stop()
    return seconds[0], median(seconds[1:])


def direct(spark: SparkSession, folder: Path) -> float:
    """Microseconds for one event of one user, without Spark, sixteen users at a time."""
    rows = spark.read.parquet(str(folder / "loaded")).limit(3200).collect()
    learned = [Update(bytes(row.state), [Learn(row.user, [1, 2, 3, 4, 5, 6], 10**9, 10**9)]) for row in rows]
    for _ in range(2):  # first for the compiler
        start = time.process_time()
        for first in range(0, len(learned), 16):
            update_states(PARAMS, learned[first : first + 16])
        elapsed = time.process_time() - start
    return elapsed / len(learned) * 1e6


def measure(spark: SparkSession, users: int, events: int, files: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="unbasket-spark-"))
    try:
        write_events(folder / "events", users, events, files)
        start = time.perf_counter()
        load(history(spark, users), PARAMS).write.parquet(str(folder / "loaded"))
        seconds = time.perf_counter() - start
        size = spark.read.parquet(str(folder / "loaded")).selectExpr("avg(length(state))").collect()[0][0]
        say(f"\n{users:,} users: loaded {users * BASKETS / seconds:,.0f} baskets/s; {size:.0f} bytes of state per user")
        took: dict[str, float] = {}
        for processor in (NoOp, Maintainer):
            first, took[processor.__name__] = streamed(spark, processor, folder, processor.__name__, events)
            rate = events / took[processor.__name__]
            say(
                f"  {processor.__name__:<10} first batch, with all users: {first:.1f} s; "
                f"then {took[processor.__name__]:.2f} s a batch of {events:,}, {rate:,.0f} events/s"
            )
        share = 1 - took["NoOp"] / took["Maintainer"]
        say(f"  our code: {share:.0%} of a batch; directly, {direct(spark, folder):.0f} µs of CPU an event")
        held = sum(file.stat().st_size for file in (folder / "Maintainer").rglob("*") if file.is_file())
        say(f"  checkpoint: {held / users:.0f} bytes per user")
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--events", type=int, default=5_000, help="in a batch")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    spark = session(given.master, settings={"spark.driver.memory": "4g"})
    for users in given.users:
        measure(spark, users, given.events, given.batches + 1)
    spark.stop()


if __name__ == "__main__":
    main()
