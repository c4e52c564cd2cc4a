"""Throughput on Spark: the initial load, streaming with more and more users in state, and where the time goes.

States of different sizes take turns, so that their differences show what users in state cost.

Then three streams of the same events take turns, on states of the same size, so that their differences show what each
part costs: Spark alone, with a state that never leaves the JVM; ours with a no-op in place of the model, so that
events, states and vectors are read and written and nothing is computed; and ours. Clocks within the last two measure
what other load on the machine can hide.
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
from unbasket.spark.processor import Maintainer
from unbasket.spark.state import decode, encode
from unbasket.spark.updating import Model, Unchanged, Update, Vector, update_states

say = Console(highlight=False, soft_wrap=True).print

PARAMS = Params.paper("tafeng")
BASKETS, ITEMS, SIZE = 5, 5000, 6  # of a user, of the shop, of a basket
CORES = 2
CLOCKS = Path(tempfile.mkdtemp(prefix="unbasket-clocks-"))


def recoded(params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]:
    """What `update_states` answers, in the same size, for users to whom nothing happens."""
    memory = HistoryState(params)
    memory.load(decode([user.state for user in users if user.state is not None]))
    return [Model(encode(memory, user.events[0].user), some_vector()) for user in users]


def some_vector() -> Vector:
    """A vector of the usual size. Each is another object: what it shares with others, Python would send once."""
    items = [*range(ITEMS, ITEMS + BASKETS * SIZE)]
    return Vector(items, [item / 7 for item in items])


class Function(Protocol):
    """What a processor calls for a bucket's users."""

    def __call__(self, params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]: ...


def clocked(name: str, function: Function) -> Function:
    """A function that also notes, in a file, how many seconds it took per user."""
    notes = str(CLOCKS / name)

    def run(params: Params, users: Sequence[Update]) -> list[Model | Unchanged | None]:
        start = time.perf_counter()
        models = function(params, users)
        if users:
            with open(notes, "a", encoding="utf-8") as file:
                file.write(f"{(time.perf_counter() - start) / len(users)}\n")
        return models

    return run


class NoOp(Maintainer):
    """Ours, with a function that does nothing in place of the model's."""

    update = staticmethod(clocked("no-op", recoded))


class Ours(Maintainer):
    """Ours, and a clock."""

    update = staticmethod(clocked("ours", update_states))


class Batch(NamedTuple):
    """What a micro-batch took, in seconds."""

    total: float
    commit: float  # of the state: on average of its partitions
    compaction: float  # a part of it


def history(spark: SparkSession, users: int) -> DataFrame:
    """Orders of so many users."""
    items = ", ".join(f"pmod(hash(id, {number}), {ITEMS})" for number in range(SIZE))
    columns = (f"id % {users} as user", "id as basket", f"cast(array({items}) as array<bigint>) as items", "id as time")
    return spark.range(users * BASKETS).selectExpr(*columns)


def write_events(folder: Path, users: int, events: int, files: int) -> None:
    """Batches in which half of the users learn a basket and the others forget the one that they learned in the batch
    before, so that histories do not grow. Nobody comes twice in a batch: that would be cheaper, and only happens in
    small shops.
    """
    chance = random.Random(1)
    folder.mkdir(parents=True)
    learned: dict[int, int] = {}
    for number in range(files):
        gone = [{"event": "forget", "user": user, "basket": basket} for user, basket in learned.items()]
        chosen = chance.sample([user for user in range(users) if user not in learned], events // 2)
        learned = {user: 10**9 + number * events + i for i, user in enumerate(chosen)}
        new = [
            {"event": "learn", "user": user, "basket": basket, "items": some_items(chance), "time": basket}
            for user, basket in learned.items()
        ]
        (folder / f"{number:03d}.json").write_text("\n".join(map(json.dumps, new + gone)))


def some_items(chance: random.Random) -> list[int]:
    return [chance.randrange(ITEMS) for _ in range(SIZE)]


def in_python(spark: SparkSession, processor: type, folder: Path) -> StreamingQuery:
    """Our stream, or the same with another processor."""
    with patch.object(stream, "Maintainer", processor):
        changes = maintain(
            read_events(spark, folder),
            PARAMS,
            checkpoint=str(folder / processor.__name__),
            loaded=spark.read.parquet(str(folder / "loaded")),
        )
    return changes.into(discard, every="0 seconds")


def in_jvm(spark: SparkSession, folder: Path) -> StreamingQuery:
    """The same events to the same states, which an aggregation reads and writes as they are, beside the last event."""
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
    """The query's next batches with events; then it is stopped."""
    batches: list[Batch] = []
    for progress in stream.watch(query):
        if progress is None or not progress.numInputRows:
            continue
        took = progress.durationMs["triggerExecution"] / 1000
        operator = progress.stateOperators[0]
        partitions = operator.numShufflePartitions or 1
        compaction = int(operator.customMetrics["rocksdbCommitCompactLatency"])
        batches.append(Batch(took, operator.commitTimeMs / 1000 / partitions, compaction / 1000 / partitions))
        if len(batches) == count:
            break
    query.stop()
    return batches


def clock(name: str) -> float:
    """What a user cost within a function, in seconds, in the median call since it was asked last."""
    notes = CLOCKS / name
    seconds = median(map(float, notes.read_text().split()))
    notes.unlink()
    return seconds


def take_turns(
    streams: Mapping[str, Callable[[], StreamingQuery]], batches: int, rounds: int
) -> dict[str, list[Batch]]:
    """Some batches of each stream in each round; the first of a round starts the stream and does not count."""
    took: dict[str, list[Batch]] = {name: [] for name in streams}
    for number in range(rounds):
        for name, start in streams.items():
            first, *rest = batches_of(start(), batches + 1)
            took[name] += rest
            say(f"  round {number + 1}, {name}: {first.total:.1f} s at first, then", *(f"{b.total:.1f}" for b in rest))
    return took


def prepare(spark: SparkSession, folder: Path, users: int, events: int, files: int) -> None:
    """A folder with events, and the loaded states of so many users."""
    write_events(folder / "events", users, events, files)
    start = time.perf_counter()
    load(history(spark, users), PARAMS).write.parquet(str(folder / "loaded"))
    seconds = time.perf_counter() - start
    size = spark.read.parquet(str(folder / "loaded")).selectExpr("avg(length(state))").collect()[0][0]
    say(f"  {users:,} users: {users * BASKETS / seconds:,.0f} baskets/s; {size:.0f} bytes of state per user")


def report_growth(took: dict[str, list[Batch]], events: int) -> None:
    """A line for each number of users: by the fastest batch, since noise only adds."""
    least = min(next(iter(took.values()))).total
    for name, batches in took.items():
        total, commit, compaction = min(batches)
        say(
            f"  {name}: {events / total:,.0f} events/s, {total / least:.2f} times the time of the first, with "
            f"{commit:.2f} s of commit, of that {compaction:.2f} s of compaction; {spread(batches)}"
        )


def report_parts(took: dict[str, list[Batch]], events: int) -> None:
    """What each part of a batch costs: by the fastest of each stream."""
    jvm, no_op, ours = (min(batches).total for batches in took.values())
    for name, batches in took.items():
        say(f"  {name}: {spread(batches)}")
    parts = {"Spark": jvm, "serialization": no_op - jvm, "our fold": ours - no_op}
    say("  of a batch: " + ", ".join(f"{name} {part:.2f} s, {part / ours:.0%}" for name, part in parts.items()))
    recoding, updating = clock("no-op"), clock("ours")
    say(
        f"  by the clocks within: {updating * 1e6:.0f} µs a user, {recoding * 1e6:.0f} of these for the user's state, "
        f"so the fold is {(updating - recoding) * events / CORES / ours:.0%} of a batch, "
        f"and {updating * events / CORES / ours:.0%} with the coding of states"
    )


def spread(batches: list[Batch]) -> str:
    seconds = [batch.total for batch in batches]
    return f"{len(seconds)} batches: {min(seconds):.2f} s, median {median(seconds):.2f} s, longest {max(seconds):.2f} s"


def measure(spark: SparkSession, folder: Path, given: argparse.Namespace) -> None:
    files = 2 * given.rounds * (given.batches + 2)
    say("loading")
    folders = {users: folder / str(users) for users in given.users}
    for users, place in folders.items():
        prepare(spark, place, users, given.events, files)
    say(f"streaming, batches of {given.events:,} events, half of them forgets")
    sizes = {f"{users:,} users": partial(in_python, spark, Ours, place) for users, place in folders.items()}
    report_growth(take_turns(sizes, given.batches, given.rounds), given.events)
    for users, place in folders.items():
        held = sum(file.stat().st_size for file in (place / "Ours").rglob("*") if file.is_file())
        say(f"  {users:,} users: the checkpoint has {held / users:.0f} bytes per user")
    users, place = next(iter(folders.items()))
    (CLOCKS / "ours").unlink()
    say(f"parts, {users:,} users")
    streams = {
        "JVM only": partial(in_jvm, spark, place),
        "no-op": partial(in_python, spark, NoOp, place),
        "ours": partial(in_python, spark, Ours, place),
    }
    report_parts(take_turns(streams, given.batches, given.rounds), given.events)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--events", type=int, default=10_000, help="in a batch, each of another user")
    parser.add_argument("--batches", type=int, default=4, help="of each stream in a round")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    spark = session(f"local[{CORES}]", settings={"spark.driver.state": "4g", "spark.log.level": "OFF"})
    folder = Path(tempfile.mkdtemp(prefix="unbasket-spark-"))
    try:
        measure(spark, folder, given)
    finally:
        spark.stop()
        shutil.rmtree(folder)
        shutil.rmtree(CLOCKS)


if __name__ == "__main__":
    main()
