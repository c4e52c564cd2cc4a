"""The training stage (paper, section 5): a history, then a stream of events into the state; its changes into sinks."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from unbasket.domain.frames import read_baskets
from unbasket.domain.history_table import to_columns, to_table
from unbasket.engine.histories import HistoryState
from unbasket.errors import SparkError
from unbasket.params import Params
from unbasket.spark.batch import BatchReport, Maintainer, Summary, on_shards
from unbasket.spark.settings import LOCAL_SETTINGS, STREAM_SETTINGS
from unbasket.spark.shard import Shard, with_hashes
from unbasket.spark.sources import id_types, route, routed
from unbasket.spark.state import NO_BATCH, State

_reports: dict[str, deque[BatchReport]] = {}  # by the run of a query


def load(history: DataFrame, params: Params, *, checkpoint: str, shards: int = 8, stripes: int = 4) -> None:
    """Create a checkpoint with the histories in a frame; one that has users or batches already is left as it is.

    The frame has one row per basket, with the columns user, basket, items, time and, under varying groups, optionally
    group; or one row per user, as returned by `histories`.
    """
    has_users = "baskets" in history.columns
    kinds = id_types(history.select("user", sql.inline("baskets")) if has_users else history, "time")
    state = State.create(checkpoint, params, kinds, shards, stripes)
    if state.users or state.batch > NO_BATCH:
        return
    if state.kinds != kinds:
        raise SparkError(f"the history has ids of the types {kinds}, and {checkpoint} {state.kinds}")
    state = State.take_over(checkpoint)
    rows = history.withColumns(route(sql.col("user"), state.shards))
    if not has_users:
        rows = rows.withColumn("items", sql.array_sort("items"))  # as in all rows
    done = on_shards(state, rows, _load_shard, tasks=state.shards, order=("hash",))
    state.after(NO_BATCH, done["files"], users=done["users"]).commit()


def _load_shard(shard: Shard, rows: pa.Table) -> Summary:
    """Write the bases of a shard, from rows per basket or per user."""
    state = HistoryState(shard.state.params)
    if "baskets" in rows.column_names:
        state.load(*to_columns(rows))
    else:
        group = "group" if "group" in rows.column_names else None
        size = state.params.group_size
        state.load(
            read_baskets(rows, user="user", basket="basket", item="items", time="time", group=group, group_size=size)
        )
    loaded = with_hashes(to_table(state.all_columns(), state.suppressed, shard.state.types), rows)
    for stripe in range(shard.state.stripes):
        shard.write_base(stripe, loaded)
    return {"files": shard.written, "users": len(loaded)}


def maintain(events: DataFrame, params: Params, *, checkpoint: str, shards: int = 8, stripes: int = 4) -> "Stream":
    """Apply a stream of events to the users' histories, which the checkpoint keeps.

    A new checkpoint gets so many shards, of which each core maintains some, and stripes: forgotten data is in no file
    `stripes` - 1 batches later. See docs/spark.md for how to choose them.
    """
    state = State.create(checkpoint, params, id_types(events, "event"), shards, stripes)
    for name, value in (STREAM_SETTINGS | (LOCAL_SETTINGS if state.folder.local else {})).items():
        events.sparkSession.conf.set(name, value)
    rate = events.sparkSession.readStream.format("rate-micro-batch").option("rowsPerBatch", state.shards)
    marks = rate.option("numPartitions", 1).load().select((sql.col("value") % state.shards).alias("shard"))
    events = routed(events, state.kinds["user"], state.shards)
    return Stream(events.unionByName(marks, allowMissingColumns=True), checkpoint)


@dataclass(frozen=True)
class Stream:
    """A stream of events that maintains a checkpoint when it is started."""

    events: DataFrame
    checkpoint: str

    def into(
        self,
        sink: Callable[[DataFrame, int], object] | None = None,
        *,
        rejected: Callable[[DataFrame], object] | None = None,
        every: str = "10 seconds",
    ) -> StreamingQuery:
        """Start maintaining the state; pass the changes of each batch, and its number, to a function.

        `rejected` is another function, for the rows of a batch that hold no event: with their `fault`, the event as
        `json`, and further columns of the source.
        Both are called when the batch is committed. After a crash, they may be called with the last batch again, with
        the same number, changes and rows.
        """
        maintainer = Maintainer(State.take_over(self.checkpoint), sink, rejected)
        writer = self.events.writeStream.option("checkpointLocation", self.checkpoint)
        query = writer.trigger(processingTime=every).foreachBatch(maintainer).start()
        _reports[str(query.runId)] = maintainer.reports
        return query


def watch(query: StreamingQuery, *, until_settled: bool = False) -> Iterator[BatchReport | None]:
    """Yield the report of each batch when it is done, and None now and then; raise an error if the query fails.

    With `until_settled`, end when all events so far are applied and forgotten data is erased.
    """
    reports, newest, settled = _reports[str(query.runId)], -1, 0
    begun = max((report.batch for report in list(reports)), default=-1)
    while True:
        is_active = query.isActive
        for report in [report for report in list(reports) if report.batch > newest]:
            newest = report.batch
            yield report
            settled = settled + 1 if report.is_settled and newest > begun else 0
            if until_settled and settled == 2:  # the first may have been planned before the last events were there
                return
        if not is_active:
            break
        yield None
        sleep(0.1)
    if query.exception() is not None:
        reason = str(query.exception()).partition("=== Streaming Query ===")[0].strip()
        raise SparkError(f"the stream has failed: {reason}")


def settle(query: StreamingQuery, *, timeout: float = 600.0) -> None:
    """Wait until all events so far are applied and forgotten data is erased, then stop the query."""
    end = monotonic() + timeout
    for _ in watch(query, until_settled=True):
        if monotonic() > end:
            raise SparkError(f"the stream has not settled within {timeout:.0f} seconds")
    query.stop()
