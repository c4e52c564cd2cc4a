"""The training stage (paper, section 5): events in, changes of user vectors out."""

from collections.abc import Callable, Iterator
from time import monotonic, sleep

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from unbasket.errors import SparkError
from unbasket.params import Params
from unbasket.spark.checkpoint import Identity, bucket_of, identify, state_key
from unbasket.spark.processor import Maintainer, change_schema
from unbasket.spark.settings import STATE_SETTINGS
from unbasket.spark.sources import ordered
from unbasket.spark.table import Table

ERASED_WITHIN = 3  # batches after that of a forget

_EVENTS = "events"


def maintain(events: DataFrame, params: Params, *, checkpoint: str, loaded: DataFrame | None = None) -> "Stream":
    """Let a stream of events happen to the users' states, which the checkpoint keeps.

    `loaded` is what `load` made of a history: the state before the first batch; a checkpoint takes it once.
    """
    spark = events.sparkSession
    for name, value in STATE_SETTINGS.items():
        spark.conf.set(name, value)
    events = ordered(events).observe(_EVENTS, sql.count(sql.lit(1)).alias("count"))
    kinds = {name: events.schema[name].dataType for name in ("user", "basket", "item")}
    names = {name: kind.simpleString() for name, kind in kinds.items()}
    identity = identify(spark, checkpoint, params, names)
    key = state_key(sql.col("user"), identity.key).alias("key")
    bucket = bucket_of(sql.col("key")).alias("bucket")
    first = None if loaded is None else loaded.select(key, "state").select("*", bucket).groupBy("bucket")
    changes = (
        events.select("*", key)
        .select("*", bucket)
        .groupBy("bucket")
        .transformWithState(
            statefulProcessor=Maintainer(params),
            outputStructType=change_schema(kinds["user"], kinds["item"]),
            outputMode="Update",
            timeMode="ProcessingTime",  # with it, Spark runs a batch at every trigger, also without events
            initialState=first,
        )
    )
    return Stream(changes, checkpoint, identity, loaded)


class Stream:
    """Changes of user vectors, as a streaming DataFrame (`changes`), that wait for a sink."""

    def __init__(self, changes: DataFrame, checkpoint: str, identity: Identity, loaded: DataFrame | None) -> None:
        self.changes = changes
        self._checkpoint = checkpoint
        self._identity = identity
        self._loaded = loaded

    def into_table(self, path: str, *, every: str = "10 seconds", buckets: int = 8) -> StreamingQuery:
        """Start to keep a table of all users' current vectors; see `Table`."""
        schema = self.changes.schema
        table = Table.open_or_create(path, self._identity, schema, buckets)
        if self._loaded is not None and table.batch < -1:
            table.merge(self._loaded, -1)
        return self.into(table.merge, every=every)

    def into(self, sink: Callable[[DataFrame, int], None], *, every: str = "10 seconds") -> StreamingQuery:
        """Start to hand the changes of each batch, and the batch's number, to a function.

        After a crash, the last batch may come again: under the same number, with the same changes. The frame must be
        used once; persist it to use it more often.
        """
        writer = self.changes.writeStream.outputMode("update").option("checkpointLocation", self._checkpoint)
        return writer.trigger(processingTime=every).foreachBatch(sink).start()


def settle(query: StreamingQuery, *, timeout: float = 600.0) -> None:
    """Wait until all events that are there have happened and what was forgotten is gone, then stop the query.

    That is after `ERASED_WITHIN` batches in a row without an event.
    """
    end = monotonic() + timeout
    idle = 0
    for progress in watch(query):
        if progress is not None:
            idle = 0 if progress.numInputRows else idle + 1
        if idle == ERASED_WITHIN:
            break
        if monotonic() > end:
            raise SparkError(f"the stream has not settled within {timeout:.0f} seconds")
    query.stop()


def watch(query: StreamingQuery) -> Iterator[StreamingQueryProgress | None]:
    """Every batch of a query when it is done, and now and then None; raises what ends the query."""
    newest = -1
    while query.isActive:
        last = query.lastProgress
        if last is not None and last.batchId > newest:  # all of them take up to a hundred times as long
            for progress in query.recentProgress:
                if progress.batchId > newest:
                    newest = progress.batchId
                    yield progress
        yield None
        sleep(0.25)
    if query.exception() is not None:
        raise SparkError(f"the stream has ended: {_problem(query)}")


def events_in(progress: StreamingQueryProgress) -> int:
    """How many events a batch had. Spark itself counts what a source reads, which may be whole files."""
    return int(progress.observedMetrics[_EVENTS]["count"]) if _EVENTS in progress.observedMetrics else 0


def _problem(query: StreamingQuery) -> str:
    """What ended a query, without the plan that Spark appends, which shows the checkpoint's key."""
    return str(query.exception() or "").partition("=== Streaming Query ===")[0].strip()
