"""A batch of events, applied to the state exactly once.

    events -> the task of each shard: read rows, apply, write files -> one commit -> changes to the sink

Tasks get the events by the hash of the user, and write files that no manifest names yet. The driver commits them all by
the next version of the manifest. A batch that Spark repeats after a crash is recognized by its number: its changes are
in its deltas. A batch without events drops what is left to erase.

A rename concerns two shards. The driver applies all events of the users in a batch's renames itself, with the same
code, and hands the resulting rows to the shards.
"""

import gc
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

from unbasket.domain.ids import Id
from unbasket.errors import SparkError
from unbasket.spark.history_rows import arrow_type, flat, stored_schema, vector_table
from unbasket.spark.manifest import Manifest, ShardFiles, State
from unbasket.spark.shard import Shard
from unbasket.spark.sources import FAULT, FIELDS
from unbasket.spark.updates import Rejection, parsed, update

UPDATED, REMOVED, REJECTED = "updated", "removed", "rejected"
"""The kinds of changes."""

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


class Renamed(NamedTuple):
    """The users in a batch's renames: the rows that changed among them, and their events that were rejected."""

    users: frozenset[Id]
    rows: pa.Table
    rejected: list[Rejection]
    added: int


class Maintainer:
    """The function that Spark calls with each batch."""

    def __init__(
        self, checkpoint: str, sink: Callable[[DataFrame, int], object] | None, reports: deque[BatchReport]
    ) -> None:
        self.reports = reports
        self._sink = sink
        self._state = State(checkpoint)
        self._state.take_over()

    def __call__(self, events: DataFrame, batch: int) -> None:
        """Apply a batch, unless the state has it already, and pass its changes on."""
        times, state = [perf_counter()], self._state
        state.check()
        if batch < state.batch:
            raise SparkError(
                f"{state.checkpoint} is at batch {state.batch}, and Spark repeats {batch}: offsets are lost"
            )
        done = [] if batch == state.batch else self._update(events, batch)
        times.append(perf_counter())
        if done:
            state.commit(_next(state.manifest, batch, done))
        state.clean()
        times.append(perf_counter())
        if self._sink is not None:
            self._sink(_changes(events.sparkSession, state, batch), batch)
        times.append(perf_counter())
        tasks, commit, sink = np.diff(times).tolist()
        stages = zip(_STAGES, np.sum([[0.0] * len(_STAGES), *(one["seconds"] for one in done)], axis=0), strict=True)
        count = {name: sum(one[name] for one in done) for name in ("events", "users", "rejected", "bytes")}
        seconds = {**dict(stages), "tasks": tasks, "commit": commit, "sink": sink, "total": tasks + commit + sink}
        is_settled = not count["events"] and not any(shard.deltas for shard in state.manifest.shards)
        self.reports.append(BatchReport(batch, **count, seconds=seconds, is_settled=is_settled))

    def _update(self, events: DataFrame, batch: int) -> list[dict[str, Any]]:
        """Let tasks update the shards; return a summary of each that had something to do."""
        manifest, spark = self._state.manifest, events.sparkSession
        cores = min(len(manifest.shards), spark.sparkContext.defaultParallelism)
        routed = _routed(events, len(manifest.shards))
        sent = routed.repartitionById(cores, (sql.col("shard") % cores).cast("int"))
        sent = sent.sortWithinPartitions("shard", "hash", "sequence").drop("sequence")
        task = partial(_update_shards, self._state.checkpoint, manifest.version, batch)
        everything = [range(core, len(manifest.shards), cores) for core in range(cores)]
        done = _collected(sent.mapInArrow(partial(task, everything, None), _SUMMARY))
        pairs = [pair for one in done for pair in one["renames"]]
        if pairs:
            renamed = self._rename(routed, pairs)
            done = _collected(sent.mapInArrow(partial(task, everything, renamed), _SUMMARY))
            done[0]["added"] += renamed.added
        updated = {one["shard"] for one in done}
        idle = [n for n, files in enumerate(manifest.shards) if files.deltas and n not in updated]
        if idle:  # Spark starts no task without events, and there are rows to erase
            dealt = partial(task, [idle[core::cores] for core in range(cores)], None)
            done += _collected(spark.range(0, cores, 1, cores).mapInArrow(dealt, _SUMMARY))
        return done

    def _rename(self, routed: DataFrame, pairs: list[tuple[int, Id, int, Id]]) -> Renamed:
        """Apply all events of the users in renames, given as hash and id of both, in their order."""
        manifest = self._state.manifest
        users = {user: hash_ for pair in pairs for hash_, user in (pair[:2], pair[2:])}
        kind = arrow_type(manifest.kinds["user"])
        wanted = pa.table([pa.array(users.values(), pa.int64()), pa.array(users, kind)], names=["hash", "user"])
        own = routed.where(sql.col("user").isin(list(users))).orderBy("sequence").drop("sequence").toArrow()
        shards = _shard_of(wanted, len(manifest.shards))
        rows = [
            Shard(self._state.folder, manifest, shard).find(wanted.filter(pa.array(shards == shard)))
            for shard in np.unique(shards).tolist()
        ]
        result = update(manifest.params, manifest.kinds, pa.concat_tables(rows), parsed(own))
        rows = _with_hashes(result.rows, wanted)
        return Renamed(frozenset(users), rows, result.rejected, result.added)


_SUMMARY = "summary string"


def _collected(summaries: DataFrame) -> list[dict[str, Any]]:
    return [json.loads(row.summary) for row in summaries.collect()]


def hash_of(user: Column) -> Column:
    """Return the hash of a user, which Spark computes faster than Python."""
    return sql.xxhash64(user)


def shard_of(hash_: Column, shards: int) -> Column:
    """Return the shard of a hash; its stripe depends on other bits."""
    return sql.pmod(hash_, sql.lit(shards))


def _routed(events: DataFrame, shards: int) -> DataFrame:
    """Return events with the hash and shard of the user, and the hash of the other user in a rename."""
    hashes = [hash_of(sql.col(name)).alias(alias) for name, alias in (("user", "hash"), ("other", "other_hash"))]
    columns = events.select(*FIELDS, FAULT, "sequence", *hashes)
    return columns.withColumn("shard", shard_of(sql.col("hash"), shards))


def _shard_of(rows: pa.Table, shards: int) -> Any:
    return flat(rows["hash"]).to_numpy() % shards


def _with_hashes(rows: pa.Table, users: pa.Table) -> pa.Table:
    """Return history rows with the hashes of their users, which `users` has."""
    hashes = users["hash"].take(pc.index_in(rows["user"], flat(users["user"])))
    return rows.add_column(0, pa.field("hash", pa.int64()), hashes)


def _update_shards(
    checkpoint: str,
    version: int,
    batch: int,
    shards: Sequence[Sequence[int]],
    renamed: Renamed | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Update the shards of this task, which the partition's number selects, and yield a summary of each."""
    context, received = TaskContext.get(), list(batches)
    assert context is not None
    state = State(checkpoint, version)
    events = pa.Table.from_batches(received) if received and "shard" in received[0].schema.names else None
    gc.disable()  # there are many objects, and no cycles: a quarter of the time
    try:
        for shard in shards[context.partitionId()]:
            own = None if events is None else events.filter(pc.equal(events["shard"], shard))
            if (own is not None and len(own)) or state.manifest.shards[shard].deltas or renamed:
                summary = _update_shard(state, batch, shard, renamed, own)
                yield pa.RecordBatch.from_pydict({"summary": [json.dumps(summary)]})
    finally:
        gc.enable()


def _update_shard(
    state: State, batch: int, number: int, renamed: Renamed | None, events: pa.Table | None
) -> dict[str, Any]:
    """Apply events to a shard and write its files; with renames that are not applied yet, only return these."""
    manifest, count = state.manifest, 0 if events is None else len(events)
    summary = {"shard": number, "renames": [], "events": count, "users": 0, "rejected": 0, "bytes": 0, "added": 0}
    if events is not None and renamed is None:
        moves = events.filter(pc.equal(events["event"], "rename")).select(["hash", "user", "other_hash", "other"])
        if len(moves := moves.drop_null()):
            return summary | {"renames": [*zip(*moves.to_pydict().values(), strict=True)]}
    times = [perf_counter()]
    shard, delta, rejected = Shard(state.folder, manifest, number), stored_schema(manifest.kinds).empty_table(), []
    if renamed is not None:
        delta = renamed.rows.filter(pa.array(_shard_of(renamed.rows, len(manifest.shards)) == number))
        rejected += renamed.rejected if number == 0 else []
        names = pa.array(renamed.users, arrow_type(manifest.kinds["user"]))
        events = None if events is None else events.filter(pc.invert(pc.is_in(events["user"], names)))
    if events is not None and len(events):
        wanted = events.select(["hash", "user"]).group_by(["hash", "user"]).aggregate([])
        rows = shard.find(wanted)
        times.append(perf_counter())
        result = update(manifest.params, manifest.kinds, rows, parsed(events))
        delta = pa.concat_tables([delta, _with_hashes(result.rows, wanted)])
        rejected += result.rejected
        summary["added"] = result.added
    times += [perf_counter()] * (3 - len(times))
    if rejected:
        delta = delta.replace_schema_metadata({REJECTED: json.dumps(rejected)})
    written = shard.write(batch, delta)
    times.append(perf_counter())
    counts = {"users": len(delta), "rejected": len(rejected), "bytes": written.size, "seconds": np.diff(times).tolist()}
    return summary | counts | {"delta": written.delta, "base": written.base}


def _next(manifest: Manifest, batch: int, done: list[dict[str, Any]]) -> Manifest:
    """Return the manifest with the files that a batch has written, and without those that it has replaced."""
    shards = list(manifest.shards)
    for one in done:
        bases, deltas = (dict(files) for files in shards[one["shard"]])
        if one["base"]:
            bases[str(batch % manifest.stripes)] = one["base"]
        if one["delta"]:
            deltas[str(batch)] = one["delta"]
        kept = {number: file for number, file in deltas.items() if int(number) > batch - manifest.stripes + 1}
        shards[one["shard"]] = ShardFiles(bases, kept)
    users = manifest.users + sum(one["added"] for one in done)
    rejected = manifest.rejected + sum(one["rejected"] for one in done)
    return manifest.next(batch=batch, users=users, rejected=rejected, shards=shards)


def _changes(spark: SparkSession, state: State, batch: int) -> DataFrame:
    """Return the changes of users' vectors in a batch, and its rejected events, from its deltas."""
    kinds = state.manifest.kinds
    files = [files.deltas[str(batch)] for files in state.manifest.shards if str(batch) in files.deltas]
    schema = f"user {kinds['user']}, change string, items array<{kinds['item']}>, weights array<double>, reason string"
    read = partial(_read_changes, state.checkpoint, state.manifest.version, files)
    return spark.range(0, len(files), 1, max(len(files), 1)).mapInArrow(read, schema)


def _read_changes(
    checkpoint: str, version: int, files: list[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    state = State(checkpoint, version)
    kinds = state.manifest.kinds
    lists = [("items", pa.list_(arrow_type(kinds["item"]))), ("weights", pa.list_(pa.float64()))]
    schema = pa.schema([("user", arrow_type(kinds["user"])), ("change", pa.string()), *lists, ("reason", pa.string())])
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        delta = state.folder.read(files[number])
        vectors = vector_table(delta, state.params)
        change = [pa.array([UPDATED] * len(vectors), pa.string()), *vectors.columns[1:]]
        yield from pa.table([vectors["user"], *change, pa.nulls(len(vectors), pa.string())], schema=schema).to_batches()
        removed = delta["user"].filter(pc.equal(pc.list_value_length(delta["baskets"]), 0)).to_pylist()
        rejected = json.loads((delta.schema.metadata or {}).get(REJECTED.encode(), b"[]"))
        rows = [{"user": user, "change": REMOVED} for user in removed]
        rows += [{"user": user, "change": REJECTED, "reason": reason} for user, reason in rejected]
        yield pa.RecordBatch.from_pylist(rows, schema)
