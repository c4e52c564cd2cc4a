"""A batch of events, applied to the state exactly once.

    events -> the task of each shard: read rows, apply, write files -> one commit -> changes to the sink

Tasks get the events by the hash of the user, and write files that no version of the state names yet. The driver commits
them all by the next version. A batch that Spark repeats after a crash is recognized by its number: its changes are
in its deltas. A batch without events drops what is left to erase.

A rename concerns two shards. If tasks report renames, the driver applies all events of their users itself, with the
same code, and lets the tasks begin again with the other events and the resulting rows.
"""

import gc
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from unbasket.domain.ids import Id
from unbasket.errors import SparkError
from unbasket.spark.shard import Shard, has_baskets, with_hashes
from unbasket.spark.sources import FAULT, JSON
from unbasket.spark.state import State
from unbasket.spark.updates import Update, parsed, update, vector_table, with_faults

UPDATED, REMOVED, REJECTED = "updated", "removed", "rejected"
"""The kinds of changes."""

Summary = dict[str, Any]
"""The work of tasks on shards: the names of their files, renames that they have found, counts, and seconds."""

_COUNTS = ("shards", "events", "users", "added", "rejected", "bytes", "read", "apply", "write")
_NO_WORK: Summary = {"files": [], "renames": [], **dict.fromkeys(_COUNTS, 0)}

_COLUMNS = ("shard", "hash", "user", "other_hash", "other", JSON, FAULT, "sequence")


class BatchReport(NamedTuple):
    """The work of a batch: events, users that changed, events that were rejected, bytes written, seconds by stage.

    `read`, `apply` and `write` are sums over all tasks; `tasks`, `commit` and `sink` are the driver's, and their sum is
    `total`. `is_settled`: there were no events, and forgotten data is in no file any more.
    """

    batch: int
    events: int
    users: int
    rejected: int
    bytes: int
    seconds: dict[str, float]
    is_settled: bool


@dataclass
class Maintainer:
    """The function that Spark calls with each batch: it applies the batch, and passes changes and faults to sinks."""

    state: State
    sink: Callable[[DataFrame, int], object] | None = None
    rejected: Callable[[DataFrame], object] | None = None
    reports: deque[BatchReport] = field(default_factory=partial(deque, maxlen=100))  # as many as Spark keeps

    def __call__(self, events: DataFrame, batch: int) -> None:
        """Apply a batch, unless the state has it already, and pass its changes on."""
        times, state = [perf_counter()], self.state
        state.check()
        if batch < state.batch:
            name = state.folder.checkpoint
            raise SparkError(f"{name} is at batch {state.batch}, and Spark repeats {batch}: offsets are lost")
        is_repeated = batch == state.batch
        done = _NO_WORK if is_repeated else self._update(events, batch)
        times.append(perf_counter())
        counts = {"users": state.users + done["added"], "rejected": state.rejected + done["rejected"]}
        after = state.after(batch, done["files"], **counts)
        if done["shards"] and after.files != state.files:
            after.commit()
            self.state = state = after
        state.clean()
        times.append(perf_counter())
        if self.rejected is not None and (is_repeated or done["rejected"]):
            self.rejected(with_faults(events, state.types))
        if self.sink is not None:
            self.sink(_changes(events.sparkSession, state, batch), batch)
        times.append(perf_counter())
        tasks, commit, sink = np.diff(times).tolist()
        seconds = {"read": done["read"], "apply": done["apply"], "write": done["write"]}
        seconds |= {"tasks": tasks, "commit": commit, "sink": sink, "total": tasks + commit + sink}
        is_settled = not done["events"] and not any("-delta-" in name for name in state.files)
        counted = (done["events"], done["users"], done["rejected"], done["bytes"])
        self.reports.append(BatchReport(batch, *counted, seconds, is_settled))

    def _update(self, events: DataFrame, batch: int) -> Summary:
        """Let tasks update the shards."""
        tasks = min(self.state.shards, events.sparkSession.sparkContext.defaultParallelism)
        events = events.select(*_COLUMNS, sql.monotonically_increasing_id().alias("row"))
        run = partial(on_shards, self.state, tasks=tasks, order=("sequence", "row"))
        done = run(events, partial(_update_shard, batch, None))
        if done["renames"]:
            hashes = {each["user"]: each["hash"] for each in done["renames"]}
            hashes |= {each["other"]: each["other_hash"] for each in done["renames"]}
            own = sql.coalesce(sql.col("user").isin([*hashes]), sql.lit(False))
            moved = events.where(own).orderBy("sequence", "row").toArrow()
            renamed = self._rename(moved, hashes)
            done = run(events.where(~own), partial(_update_shard, batch, renamed))
            done["events"] += len(moved)
            done["added"] += renamed.added
        return done

    def _rename(self, events: pa.Table, hashes: dict[Id, int]) -> Update:
        """Apply all events of users with these hashes, who are in renames."""
        state, shards = self.state, {hash_ % self.state.shards for hash_ in hashes.values()}
        wanted = pa.table({"hash": [*hashes.values()], "user": pa.array(hashes, state.schema.field("user").type)})
        rows = pa.concat_tables([Shard(state, shard).find(wanted) for shard in shards])
        result = update(state.params, state.types, rows, parsed(events, state.types))
        return result._replace(rows=with_hashes(result.rows, wanted))


def on_shards(
    state: State, rows: DataFrame, work: Callable[[Shard, pa.Table], Summary], *, tasks: int, order: tuple[str, ...]
) -> Summary:
    """Let tasks work on each shard of which there are rows, in their order. Rows without a hash are left out."""

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(batches)
        gc.disable()  # there are many objects, and no cycles: a quarter of the time
        try:
            for number in pc.unique(rows["shard"]).to_pylist():
                own = rows.filter((pc.field("shard") == number) & pc.field("hash").is_valid())
                yield pa.RecordBatch.from_pydict({"summary": [json.dumps(work(Shard(state, number), own))]})
        finally:
            gc.enable()

    sent = rows.repartitionById(tasks, (sql.col("shard") % tasks).cast("int")).sortWithinPartitions(*order)
    sums = dict(_NO_WORK)
    for row in sent.drop("sequence", "row").mapInArrow(task, "summary string").collect():
        sums |= {name: sums[name] + value for name, value in json.loads(row.summary).items()}
    return sums


def _update_shard(batch: int, renamed: Update | None, shard: Shard, events: pa.Table) -> Summary:
    """Apply events to a shard, and write its files with their changes and those of renamed users.

    With renames that are not applied yet, only return these.
    """
    state, times = shard.state, [perf_counter()]
    renames = events.select(["user", "hash", "other", "other_hash"]).drop_null()
    if len(renames):
        return {"renames": renames.to_pylist()}
    wanted = events.select(["hash", "user"]).group_by(["hash", "user"]).aggregate([])
    rows = shard.find(wanted)
    times.append(perf_counter())
    result = update(state.params, state.types, rows, parsed(events, state.types))
    delta, rejected = with_hashes(result.rows, wanted), result.rejected
    if renamed is not None:
        is_own = renamed.rows["hash"].to_numpy() % state.shards == shard.number
        delta = pa.concat_tables([delta, renamed.rows.filter(pa.array(is_own))])
        rejected += renamed.rejected if shard.number == 0 else []
    times.append(perf_counter())
    if rejected:
        delta = delta.replace_schema_metadata({REJECTED: json.dumps([(user, reason) for user, reason, _ in rejected])})
    shard.write(batch, delta)
    times.append(perf_counter())
    counts = {"events": len(events), "users": len(delta), "added": result.added, "rejected": len(rejected)}
    seconds = dict(zip(("read", "apply", "write"), np.diff(times).tolist(), strict=True))
    return {"shards": 1, "files": shard.written, "bytes": shard.bytes_written, **counts, **seconds}


def _changes(spark: SparkSession, state: State, batch: int) -> DataFrame:
    """Return the changes of users' vectors in a batch, and its rejected events, from its deltas."""
    files = [name for name in state.files if f"-delta-{batch}-" in name]
    columns = pa.schema([state.schema.field("user"), ("reason", pa.string())])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch["id"].to_pylist()):
            delta = state.folder.read_table(files[number])
            updated = vector_table(delta.filter(has_baskets(delta)), state.params)
            removed = delta.filter(pc.invert(has_baskets(delta))).select(["user"])
            rejected = json.loads((delta.schema.metadata or {}).get(REJECTED.encode(), b"[]"))
            reasons = pa.Table.from_pylist([{"user": user, "reason": reason} for user, reason in rejected], columns)
            yield from pa.concat_tables([updated, removed, reasons], promote_options="default").to_batches()

    schema = "user {user}, items array<{item}>, weights array<double>, reason string".format(**state.kinds)
    rows = spark.range(0, len(files), 1, max(len(files), 1)).mapInArrow(read, schema)
    is_rejected, is_removed = sql.col("reason").isNotNull(), sql.col("items").isNull()
    change = sql.when(is_rejected, REJECTED).when(is_removed, REMOVED).otherwise(UPDATED).alias("change")
    return rows.select("user", change, "items", "weights", "reason")
