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

ERASED_WITHIN = 3  # batches after the batch of a forget

_EVENTS = "events"


def maintain(events: DataFrame, params: Params, *, checkpoint: str, loaded: DataFrame | None = None) -> "Stream":
    """Apply a stream of events to the users' states, which the checkpoint keeps.

    `loaded` is what `load` made of a history: the state before the first batch. A checkpoint takes it once.
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
    """Changes of users' vectors, as a streaming DataFrame (`changes`) that needs a sink."""

    def __init__(self, changes: DataFrame, checkpoint: str, identity: Identity, loaded: DataFrame | None) -> None:
        self.changes = changes
        self._checkpoint = checkpoint
        self._identity = identity
        self._loaded = loaded

    def into_table(self, path: str, *, every: str = "10 seconds", buckets: int = 8) -> StreamingQuery:
        """Start keeping a table of all users' current vectors; see `Table`."""
        schema = self.changes.schema
        table = Table.open_or_create(path, self._identity, schema, buckets)
        if self._loaded is not None and table.batch < -1:
            table.merge(self._loaded, -1)
        return self.into(table.merge, every=every)

    def into(self, sink: Callable[[DataFrame, int], None], *, every: str = "10 seconds") -> StreamingQuery:
        """Start handing the changes of each batch, and the batch's number, to a function.

        After a crash, the last batch may come again, with the same number and the same changes. The function may use
        the frame once; to use it more often, persist it.
        """
        writer = self.changes.writeStream.outputMode("update").option("checkpointLocation", self._checkpoint)
        return writer.trigger(processingTime=every).foreachBatch(sink).start()


def settle(query: StreamingQuery, *, timeout: float = 600.0) -> None:
    """Wait until all events so far are applied and what was forgotten is gone, then stop the query.

    That is the case after `ERASED_WITHIN` batches in a row without an event.
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
    """Yield the progress of each batch when it is done, and None now and then; raise an error if the query fails."""
    newest = -1
    while query.isActive:
        last = query.lastProgress
        if last is not None and last.batchId > newest:  # to ask for all of them takes up to a hundred times as long
            for progress in query.recentProgress:
                if progress.batchId > newest:
                    newest = progress.batchId
                    yield progress
        yield None
        sleep(0.25)
    if query.exception() is not None:
        raise SparkError(f"the stream has failed: {_problem(query)}")


def events_in(progress: StreamingQueryProgress) -> int:
    """How many events a batch had. Spark's own count is of what a source reads, which may be whole files."""
    return int(progress.observedMetrics[_EVENTS]["count"]) if _EVENTS in progress.observedMetrics else 0


def _problem(query: StreamingQuery) -> str:
    """Why a query failed, without the plan that Spark appends: it shows the checkpoint's key."""
    return str(query.exception() or "").partition("=== Streaming Query ===")[0].strip()
