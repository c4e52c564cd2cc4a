"""The training stage (paper, section 5): events in, changes of user vectors out."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from time import monotonic, sleep
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, DataType, DoubleType, StringType, StructField, StructType

from unbasket.domain.events import Event, parse_event
from unbasket.errors import InvalidIdError, SparkError, UnbasketError
from unbasket.params import Params
from unbasket.spark.checkpoint import Identity, bucket_of, identify, state_key
from unbasket.spark.settings import STATE_SETTINGS
from unbasket.spark.sources import FAULT, FIELDS, id_types, in_types, ordered
from unbasket.spark.table import REJECTED, REMOVED, UPDATED, Table
from unbasket.spark.user_state import Model, Update, update_states

ERASED_WITHIN = 3  # batches after the batch of a forget
STATE = "orders"  # the name of the state in the checkpoint
_EVENTS = "events"


def maintain(events: DataFrame, params: Params, *, checkpoint: str, loaded: DataFrame | None = None) -> "Stream":
    """Apply a stream of events to the users' states, which the checkpoint keeps.

    `loaded` is a result of `load`: the state before the first batch. A checkpoint accepts it once.
    """
    spark = events.sparkSession
    for name, value in STATE_SETTINGS.items():
        spark.conf.set(name, value)
    events = ordered(events)
    identity = identify(spark, checkpoint, params, id_types(events.schema))
    if id_types(events.schema) != identity.kinds:
        events = in_types(events, identity.kinds)
    if loaded is not None and loaded.schema["state"].metadata.get("kinds") != identity.kinds:
        raise SparkError(
            f"the history has ids of the types {loaded.schema['state'].metadata.get('kinds')}, and the stream "
            f"{identity.kinds}. Read the events with the types of the history: event_schema, or --users, --baskets and "
            "--items"
        )
    events = events.observe(_EVENTS, sql.count(sql.lit(1)).alias("count"))
    user, item = (events.schema[name].dataType for name in ("user", "item"))
    key = state_key(sql.col("user"), identity.key).alias("key")
    bucket = bucket_of(sql.col("key")).alias("bucket")
    first = None if loaded is None else loaded.select(key, "state").select("*", bucket).groupBy("bucket")
    changes = (
        events.select("*", key)
        .select("*", bucket)
        .groupBy("bucket")
        .transformWithState(
            statefulProcessor=Maintainer(params),
            outputStructType=change_schema(user, item),
            outputMode="Update",
            timeMode="ProcessingTime",  # makes Spark run a batch at every trigger, even without events
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
        """Start maintaining a table of all users' current vectors; see `Table`."""
        table = Table.open_or_create(path, self._identity, self.changes.schema, buckets)
        if self._loaded is not None and table.batch < -1:
            table.merge(self._loaded, -1)
        return self.into(table.merge, every=every)

    def into(self, sink: Callable[[DataFrame, int], None], *, every: str = "10 seconds") -> StreamingQuery:
        """Start passing the changes of each batch, and its number, to a function.

        After a crash, the last batch may be repeated, with the same number and the same changes. The function may use
        the frame once; to use it more often, persist it.
        """
        writer = self.changes.writeStream.outputMode("update").option("checkpointLocation", self._checkpoint)
        return writer.trigger(processingTime=every).foreachBatch(sink).start()


def change_schema(user: DataType, item: DataType) -> StructType:
    """Return the schema of changes: a user's new vector, a removed user, or a rejected event with the reason."""
    kinds = {"items": ArrayType(item), "weights": ArrayType(DoubleType()), "reason": StringType()}
    fields = [StructField("user", user), StructField("change", StringType(), nullable=False)]
    return StructType([*fields, *(StructField(name, kind) for name, kind in kinds.items())])


class Maintainer(StatefulProcessor):
    """The stateful operator on executors: applies users' events to their states, and returns changes of vectors.

    Spark's key is a bucket of users, and its state a map from the users' own keys, since a call to Spark for each user
    would cost more than the update of that user.
    """

    update = staticmethod(update_states)

    def __init__(self, params: Params) -> None:
        self._params = params

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Get the state store from Spark, once per partition and batch."""
        self._states = handle.getMapState(STATE, "key binary", "state binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803, ARG002
        """Apply all events of a bucket's users in this batch."""
        by_user: dict[bytes, list[Row]] = defaultdict(list)
        for row in rows:
            by_user[bytes(row["key"])].append(row)
        users: dict[bytes, list[Event]] = {}
        for user, own in by_user.items():
            events, rejected = parsed(own)
            yield from rejected
            if events:
                users[user] = events
        stored = {user: self._states.getValue((user,)) for user in users}
        updates = [Update(bytes(state[0]) if state else None, users[user]) for user, state in stored.items()]
        for user, model in zip(stored, self.update(self._params, updates), strict=True):
            name = users[user][0].user
            if isinstance(model, Model):
                self._states.updateValue((user,), (model.state,))
                yield _change(name, UPDATED, items=model.vector.items, weights=model.vector.weights)
            elif model is None and stored[user]:
                self._states.removeKey((user,))
                yield _change(name, REMOVED)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:  # noqa: N802, N803, ARG002
        """Store a user who was loaded in batch, before the first micro-batch."""
        self._states.updateValue((bytes(initialState["key"]),), (bytes(initialState["state"]),))


def parsed(rows: Iterable[Row]) -> tuple[list[Event], list[Row]]:
    """Parse rows into events, in order, and a rejection for each invalid row."""
    events: list[Event] = []
    rejected: list[Row] = []
    for row in sorted(rows, key=_sequence):
        try:
            if row[FAULT] is not None:
                raise InvalidIdError(row[FAULT])
            events.append(parse_event({name: row[name] for name in FIELDS if row[name] is not None}))
        except UnbasketError as error:
            rejected.append(_change(row["user"], REJECTED, reason=str(error)))
    return events, rejected


def _sequence(row: Row) -> tuple[bool, Any]:
    """Return the sort key of an event. Spark passes a struct to a stateful processor as a dict."""
    sequence = row["sequence"]
    return sequence is not None, tuple(sequence.values()) if isinstance(sequence, dict) else sequence


def _change(user: object, change: str, **fields: object) -> Row:
    return Row(user=user, change=change, **{"items": None, "weights": None, "reason": None, **fields})


def settle(query: StreamingQuery, *, timeout: float = 600.0) -> None:
    """Wait until all events so far are applied and forgotten data is erased, then stop the query.

    This takes `ERASED_WITHIN` consecutive batches without an event.
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
        if last is not None and last.batchId > newest:  # recentProgress takes up to a hundred times as long
            for progress in query.recentProgress:
                if progress.batchId > newest:
                    newest = progress.batchId
                    yield progress
        yield None
        sleep(0.25)
    if query.exception() is not None:
        # Spark appends the plan, which contains the checkpoint's key
        reason = str(query.exception()).partition("=== Streaming Query ===")[0].strip()
        raise SparkError(f"the stream has failed: {reason}")


def events_in(progress: StreamingQueryProgress) -> int:
    """Return the number of events in a batch. Spark's own count is of rows read, which may be whole files."""
    return int(progress.observedMetrics[_EVENTS]["count"]) if _EVENTS in progress.observedMetrics else 0
