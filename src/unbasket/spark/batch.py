"""A batch of events, applied to the state exactly once.

    events -> the task of each shard: read rows, apply, write files -> one commit -> changes to the sink

Tasks get the events by the hash of the user, and write files that no manifest names yet. The driver commits them all by
the next version of the manifest. A batch that Spark repeats after a crash is recognized by its number: its changes are
in its deltas. A batch without events drops what is left to erase.

A rename concerns two shards. If tasks report renames, the driver applies all events of their users itself, with the
same code, and lets the tasks begin again with the other events and the resulting rows.
"""

import gc
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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
from unbasket.spark.history_rows import arrow_type, flat, vector_table
from unbasket.spark.manifest import State
from unbasket.spark.shard import Shard
from unbasket.spark.sources import FAULT, JSON
from unbasket.spark.updates import Update, parsed, update, with_faults

UPDATED, REMOVED, REJECTED = "updated", "removed", "rejected"
"""The kinds of changes."""

Summary = dict[str, Any]
"""The work of a task on one shard: the names of its files, and counts."""

_COLUMNS = ("shard", "hash", "user", "other_hash", "other", JSON, FAULT, "sequence")
_COUNTS = ("events", "users", "rejected", "bytes", "added")
_STAGES = ("read", "apply", "write")


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


class Maintainer:
    """The function that Spark calls with each batch."""

    def __init__(
        self,
        checkpoint: str,
        sink: Callable[[DataFrame, int], object] | None,
        reports: deque[BatchReport],
        rejected: Callable[[DataFrame], object] | None = None,
    ) -> None:
        self.reports = reports
        self._sink, self._rejected = sink, rejected
        self._state = State(checkpoint)
        self._state.take_over()

    def __call__(self, events: DataFrame, batch: int) -> None:
        """Apply a batch, unless the state has it already, and pass its changes on."""
        times, state, done = [perf_counter()], self._state, list[Summary]()
        state.check()
        if batch < state.batch:
            raise SparkError(
                f"{state.checkpoint} is at batch {state.batch}, and Spark repeats {batch}: offsets are lost"
            )
        is_repeated = batch == state.batch
        if not is_repeated:
            done = self._update(events, batch)
        times.append(perf_counter())
        counts = {name: sum(one[name] for one in done) for name in _COUNTS}
        users, rejected = len(state) + counts.pop("added"), state.rejected + counts["rejected"]
        written = [file for one in done for file in one["files"]]
        after = state.manifest.after(batch, written, users=users, rejected=rejected)
        if done and after.files != state.manifest.files:
            state.commit(after)
        state.clean()
        times.append(perf_counter())
        if self._rejected is not None and (is_repeated or counts["rejected"]):
            self._rejected(with_faults(events, state.manifest.kinds))
        if self._sink is not None:
            self._sink(_changes(events.sparkSession, state, batch), batch)
        times.append(perf_counter())
        tasks, commit, sink = np.diff(times).tolist()
        seconds = {stage: sum(one[stage] for one in done) for stage in _STAGES}
        seconds |= {"tasks": tasks, "commit": commit, "sink": sink, "total": tasks + commit + sink}
        is_settled = not counts["events"] and not any("-delta-" in name for name in state.manifest.files)
        self.reports.append(BatchReport(batch, **counts, seconds=seconds, is_settled=is_settled))

    def _update(self, events: DataFrame, batch: int) -> list[Summary]:
        """Let tasks update the shards."""
        tasks = min(self._state.manifest.shards, events.sparkSession.sparkContext.defaultParallelism)
        events = events.select(*_COLUMNS, sql.monotonically_increasing_id().alias("row"))
        run = partial(on_shards, self._state, tasks=tasks, order=("sequence", "row"))
        done = run(events, partial(_update_shard, batch, None))
        renames = [rename for one in done for rename in one.get("renames", [])]
        if renames:
            users = {each["user"]: each["hash"] for each in renames}
            users |= {each["other"]: each["other_hash"] for each in renames}
            own = sql.coalesce(sql.col("user").isin([*users]), sql.lit(False))
            moved = events.where(own).orderBy("sequence", "row").toArrow()
            renamed = self._rename(moved, users)
            done = run(events.where(~own), partial(_update_shard, batch, renamed))
            done[0]["events"] += len(moved)
            done[0]["added"] += renamed.added
        return done

    def _rename(self, events: pa.Table, users: dict[Id, int]) -> Update:
        """Apply all events of users with these hashes, who are in renames."""
        manifest = self._state.manifest
        kind = arrow_type(manifest.kinds["user"])
        wanted = pa.table([pa.array(users.values(), pa.int64()), pa.array(users, kind)], names=["hash", "user"])
        shards = {hash_ % manifest.shards for hash_ in users.values()}
        rows = pa.concat_tables([Shard(self._state, shard).find(wanted) for shard in shards])
        result = update(manifest.params, manifest.kinds, rows, parsed(events, manifest.kinds))
        return result._replace(rows=with_hashes(result.rows, wanted))


def on_shards(
    state: State, rows: DataFrame, work: Callable[[Shard, pa.Table], Summary], *, tasks: int, order: tuple[str, ...]
) -> list[Summary]:
    """Let tasks work on each shard of which there are rows, in their order. Rows without a hash are left out."""
    sent = rows.repartitionById(tasks, (sql.col("shard") % tasks).cast("int")).sortWithinPartitions(*order)
    done = sent.drop("sequence", "row").mapInArrow(
        partial(_on_shards, state.checkpoint, state.manifest.name, work), "summary string"
    )
    return [json.loads(row.summary) for row in done.collect()]


def _on_shards(
    checkpoint: str, version: str, work: Callable[[Shard, pa.Table], Summary], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    state, rows = State(checkpoint, version), pa.Table.from_batches(batches)
    gc.disable()  # there are many objects, and no cycles: a quarter of the time
    try:
        for number in pc.unique(rows["shard"]).to_pylist():
            own = rows.filter((pc.field("shard") == number) & pc.field("hash").is_valid())
            yield pa.RecordBatch.from_pydict({"summary": [json.dumps(work(Shard(state, number), own))]})
    finally:
        gc.enable()


def with_hashes(rows: pa.Table, users: pa.Table) -> pa.Table:
    """Return history rows with the hashes of their users, which `users` has."""
    hashes = users["hash"].take(pc.index_in(rows["user"], flat(users["user"])))
    return rows.add_column(0, pa.field("hash", pa.int64()), hashes)


def _update_shard(batch: int, renamed: Update | None, shard: Shard, events: pa.Table) -> Summary:
    """Apply events to a shard, and write its files with their changes and those of renamed users.

    With renames that are not applied yet, only return these.
    """
    manifest, times = shard.manifest, [perf_counter()]
    renames = events.select(["user", "hash", "other", "other_hash"]).drop_null()
    if len(renames):
        return {"renames": renames.to_pylist()}
    wanted = events.select(["hash", "user"]).group_by(["hash", "user"]).aggregate([])
    rows = shard.find(wanted)
    times.append(perf_counter())
    result = update(manifest.params, manifest.kinds, rows, parsed(events, manifest.kinds))
    delta, rejected = with_hashes(result.rows, wanted), result.rejected
    if renamed is not None:
        is_own = flat(renamed.rows["hash"]).to_numpy() % manifest.shards == shard.number
        delta = pa.concat_tables([delta, renamed.rows.filter(pa.array(is_own))])
        rejected += renamed.rejected if shard.number == 0 else []
    times.append(perf_counter())
    if rejected:
        delta = delta.replace_schema_metadata({REJECTED: json.dumps([(user, reason) for user, reason, _ in rejected])})
    shard.write(batch, delta)
    times.append(perf_counter())
    counts = (len(events), len(delta), len(rejected), shard.bytes_written, result.added)
    return {
        "files": shard.written,
        **dict(zip(_COUNTS, counts, strict=True)),
        **dict(zip(_STAGES, np.diff(times).tolist(), strict=True)),
    }


def _changes(spark: SparkSession, state: State, batch: int) -> DataFrame:
    """Return the changes of users' vectors in a batch, and its rejected events, from its deltas."""
    kinds, files = state.manifest.kinds, [name for name in state.manifest.files if f"-delta-{batch}-" in name]
    schema = f"user {kinds['user']}, items array<{kinds['item']}>, weights array<double>, reason string"
    numbers = spark.range(0, len(files), 1, max(len(files), 1))
    rows = numbers.mapInArrow(partial(_read_changes, state.checkpoint, state.manifest.name, files), schema)
    is_rejected, is_removed = sql.col("reason").isNotNull(), sql.col("items").isNull()
    change = sql.when(is_rejected, REJECTED).when(is_removed, REMOVED).otherwise(UPDATED).alias("change")
    return rows.select("user", change, "items", "weights", "reason")


def _read_changes(
    checkpoint: str, version: str, files: list[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    state = State(checkpoint, version)
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        delta = state.folder.read(files[number])
        changes = vector_table(delta, state.params)
        changes = changes.append_column("reason", pa.nulls(len(changes), pa.string()))
        rejected = json.loads((delta.schema.metadata or {}).get(REJECTED.encode(), b"[]"))
        rows = [{"user": user, "reason": reason} for user, reason in rejected]
        yield from pa.concat_tables([changes, pa.Table.from_pylist(rows, changes.schema)]).to_batches()
