"""Throughput on Spark: the initial load, streaming with a growing number of users, and a breakdown of the time.

Streams on states of different sizes alternate; their differences are the cost of users in state.

Then three streams of the same events alternate, on states of the same size; their differences are the cost of each
step: Spark alone, with a state that never leaves the JVM; ours with a no-op in place of the model, which reads and
writes events, states and vectors without computing; and ours. Timers within the last two measure differences that other
load on the machine can hide.
"""

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, Protocol
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console

from unbasket import Params
from unbasket.engine.histories import HistoryState
from unbasket.spark import event_schema, load, maintain, read_files, session, stream
from unbasket.spark.checkpoint import state_key
from unbasket.spark.stream import Maintainer
from unbasket.spark.user_state import Model, Unchanged, Update, Vector, decode, encode, update_states

say = Console(highlight=False, soft_wrap=True).print

PARAMS = Params.paper("tafeng")
BASKETS, ITEMS, SIZE = 5, 5000, 6  # of a user, of the shop, of a basket
CORES = 2
TIMES = Path(tempfile.mkdtemp(prefix="unbasket-times-"))


def recoded(params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]:
    """Return results of the same size as those of `update_states`, without applying events."""
    memory = HistoryState(params)
    memory.load(decode([user.state for user in users if user.state is not None]))
    return [Model(encode(memory, user.events[0].user), some_vector()) for user in users]


def some_vector() -> Vector:
    """Return a vector of the usual size. Each is a new object: Python would serialize a shared one once."""
    items = [*range(ITEMS, ITEMS + BASKETS * SIZE)]
    return Vector(items, [item / 7 for item in items])


class Function(Protocol):
    """A function that a processor calls for a bucket's users."""

    def __call__(self, params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]: ...


def timed(name: str, function: Function) -> Function:
    """Wrap a function to record its seconds per user in a file."""
    path = str(TIMES / name)

    def run(params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]:
        start = time.perf_counter()
        models = function(params, users)
        if users:
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{(time.perf_counter() - start) / len(users)}\n")
        return models

    return run


class NoOp(Maintainer):
    """Our processor with a no-op in place of the model."""

    update = staticmethod(timed("no-op", recoded))


class Ours(Maintainer):
    """Our processor with a timer."""

    update = staticmethod(timed("ours", update_states))


class Batch(NamedTuple):
    """The durations of a micro-batch, in seconds."""

    total: float
    commit: float  # of the state, mean over its partitions
    compaction: float  # included in the commit


def history(spark: SparkSession, users: int) -> DataFrame:
    """Generate baskets of users."""
    items = ", ".join(f"pmod(hash(id, {number}), {ITEMS})" for number in range(SIZE))
    columns = (f"id % {users} as user", "id as basket", f"cast(array({items}) as array<bigint>) as items", "id as time")
    return spark.range(users * BASKETS).selectExpr(*columns)


def write_events(folder: Path, users: int, events: int, files: int) -> None:
    """Write batches in which half of the users learn a basket and the others forget their basket of the previous batch.

    So histories do not grow. Each user occurs once in a batch: repetitions would be cheaper, and are typical of small
    shops only.
    """
    chance = random.Random(1)
    folder.mkdir(parents=True)
    learned: dict[int, int] = {}
    for number in range(files):
        forgets = [{"event": "forget", "user": user, "basket": basket} for user, basket in learned.items()]
        chosen = chance.sample([user for user in range(users) if user not in learned], events // 2)
        learned = {user: 10**9 + number * events + i for i, user in enumerate(chosen)}
        new = [
            {"event": "learn", "user": user, "basket": basket, "items": some_items(chance), "time": basket}
            for user, basket in learned.items()
        ]
        (folder / f"{number:03d}.json").write_text("\n".join(map(json.dumps, new + forgets)))


def some_items(chance: random.Random) -> list[int]:
    return [chance.randrange(ITEMS) for _ in range(SIZE)]


def in_python(spark: SparkSession, processor: type, folder: Path) -> StreamingQuery:
    """Start our stream with a processor."""
    with patch.object(stream, "Maintainer", processor):
        changes = maintain(
            read_events(spark, folder),
            PARAMS,
            checkpoint=str(folder / processor.__name__),
            loaded=spark.read.parquet(str(folder / "loaded")),
        )
    return changes.into(discard, every="0 seconds")


def in_jvm(spark: SparkSession, folder: Path) -> StreamingQuery:
    """Start a stream of the same events and states in an aggregation that only copies states and the last event."""
    events = read_events(spark, folder)
    loaded = spark.readStream.schema("user long, state binary").parquet(str(folder / "loaded"))
    both = events.unionByName(loaded, allowMissingColumns=True).withColumn("key", state_key(sql.col("user"), bytes(32)))
    event = sql.max(sql.struct("sequence", *event_schema().names)).alias("event")
    states = both.groupBy("key").agg(sql.first("state", ignorenulls=True), event)
    writer = states.writeStream.outputMode("update").option("checkpointLocation", str(folder / "jvm"))
    return writer.trigger(processingTime="0 seconds").foreachBatch(discard).start()


def read_events(spark: SparkSession, folder: Path) -> DataFrame:
    return read_files(spark, str(folder / "events"), event_schema("long", "long", "long"), most=1)


def discard(frame: DataFrame, _: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def batches_of(query: StreamingQuery, count: int) -> list[Batch]:
    """Return the query's next batches with events, and stop it."""
    batches: list[Batch] = []
    for progress in stream.watch(query):
        if progress is None or not progress.numInputRows:
            continue
        total = progress.durationMs["triggerExecution"] / 1000
        operator = progress.stateOperators[0]
        partitions = operator.numShufflePartitions or 1
        compaction = int(operator.customMetrics["rocksdbCommitCompactLatency"])
        batches.append(Batch(total, operator.commitTimeMs / 1000 / partitions, compaction / 1000 / partitions))
        if len(batches) == count:
            break
    query.stop()
    return batches


def recorded(name: str) -> float:
    """Return the seconds per user in the median call of a timed function, and reset its record."""
    path = TIMES / name
    seconds = median(map(float, path.read_text().split()))
    path.unlink()
    return seconds


def alternate(streams: Mapping[str, Callable[[], StreamingQuery]], batches: int, runs: int) -> dict[str, list[Batch]]:
    """Run batches of each stream in each run; the first batch of a run starts the stream and does not count."""
    durations: dict[str, list[Batch]] = {name: [] for name in streams}
    for number in range(runs):
        for name, start in streams.items():
            first, *rest = batches_of(start(), batches + 1)
            durations[name] += rest
            say(f"  run {number + 1}, {name}: {first.total:.1f} s at first, then", *(f"{b.total:.1f}" for b in rest))
    return durations


def prepare(spark: SparkSession, folder: Path, users: int, events: int, files: int) -> None:
    """Write events and the loaded states of users into a folder."""
    write_events(folder / "events", users, events, files)
    start = time.perf_counter()
    load(history(spark, users), PARAMS).write.parquet(str(folder / "loaded"))
    seconds = time.perf_counter() - start
    size = spark.read.parquet(str(folder / "loaded")).selectExpr("avg(length(state))").collect()[0][0]
    say(f"  {users:,} users: {users * BASKETS / seconds:,.0f} baskets/s; {size:.0f} bytes of state per user")


def report_growth(durations: dict[str, list[Batch]], events: int) -> None:
    """Print a line for each number of users, by the fastest batch, since noise only adds."""
    least = min(next(iter(durations.values()))).total
    for name, batches in durations.items():
        total, commit, compaction = min(batches)
        say(
            f"  {name}: {events / total:,.0f} events/s, {total / least:.2f} times the time of the first, with "
            f"{commit:.2f} s of commit, of that {compaction:.2f} s of compaction; {spread(batches)}"
        )


def report_steps(durations: dict[str, list[Batch]], events: int) -> None:
    """Print the cost of each step of a batch, by the fastest of each stream."""
    jvm, no_op, ours = (min(batches).total for batches in durations.values())
    for name, batches in durations.items():
        say(f"  {name}: {spread(batches)}")
    steps = {"Spark": jvm, "serialization": no_op - jvm, "our fold": ours - no_op}
    say("  of a batch: " + ", ".join(f"{name} {cost:.2f} s, {cost / ours:.0%}" for name, cost in steps.items()))
    recoding, updating = recorded("no-op"), recorded("ours")
    say(
        f"  by the timers within: {updating * 1e6:.0f} µs a user, {recoding * 1e6:.0f} of these for the user's state, "
        f"so the fold is {(updating - recoding) * events / CORES / ours:.0%} of a batch, "
        f"and {updating * events / CORES / ours:.0%} with the coding of states"
    )


def spread(batches: list[Batch]) -> str:
    seconds = [batch.total for batch in batches]
    return f"{len(seconds)} batches: {min(seconds):.2f} s, median {median(seconds):.2f} s, longest {max(seconds):.2f} s"


def measure(spark: SparkSession, folder: Path, given: argparse.Namespace) -> None:
    files = 2 * given.runs * (given.batches + 2)
    say("loading")
    folders = {users: folder / str(users) for users in given.users}
    for users, path in folders.items():
        prepare(spark, path, users, given.events, files)
    say(f"streaming, batches of {given.events:,} events, half of them forgets")
    sizes = {f"{users:,} users": partial(in_python, spark, Ours, path) for users, path in folders.items()}
    report_growth(alternate(sizes, given.batches, given.runs), given.events)
    for users, path in folders.items():
        size = sum(file.stat().st_size for file in (path / "Ours").rglob("*") if file.is_file())
        say(f"  {users:,} users: the checkpoint has {size / users:.0f} bytes per user")
    users, path = next(iter(folders.items()))
    (TIMES / "ours").unlink()
    say(f"steps, {users:,} users")
    streams = {
        "JVM only": partial(in_jvm, spark, path),
        "no-op": partial(in_python, spark, NoOp, path),
        "ours": partial(in_python, spark, Ours, path),
    }
    report_steps(alternate(streams, given.batches, given.runs), given.events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--events", type=int, default=10_000, help="in a batch, each of another user")
    parser.add_argument("--batches", type=int, default=4, help="of each stream in a run")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    spark = session(f"local[{CORES}]", settings={"spark.driver.memory": "4g", "spark.log.level": "OFF"})
    folder = Path(tempfile.mkdtemp(prefix="unbasket-spark-"))
    try:
        measure(spark, folder, given)
    finally:
        spark.stop()
        shutil.rmtree(folder)
        shutil.rmtree(TIMES)


if __name__ == "__main__":
    main()
