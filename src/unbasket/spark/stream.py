"""The training stage (paper, section 5): a stream of events into the state, and changes of each batch into sinks."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from unbasket.errors import SparkError
from unbasket.params import Params
from unbasket.spark.batch import BatchReport, Maintainer
from unbasket.spark.settings import LOCAL_SETTINGS, STREAM_SETTINGS
from unbasket.spark.sources import id_types, routed
from unbasket.spark.state import State

_reports: dict[str, deque[BatchReport]] = {}  # by the run of a query


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
