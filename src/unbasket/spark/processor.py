"""What Spark's executors run for each user with events in a micro-batch."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, DataType, DoubleType, StringType, StructField, StructType

from unbasket.domain.events import Event, parse_event
from unbasket.errors import UnbasketError
from unbasket.params import Params
from unbasket.spark.sources import FIELDS
from unbasket.spark.updating import Model, Update, update_states

UPDATED, REMOVED, REJECTED = "updated", "removed", "rejected"

STATE = "orders"  # the name of the state, in the checkpoint


def change_schema(user: DataType, item: DataType) -> StructType:
    """A change of the model: a user's new vector, a user who is gone, or a row that is not a valid event, and why."""
    return StructType(
        [
            StructField("user", user),
            StructField("change", StringType(), nullable=False),
            StructField("items", ArrayType(item)),
            StructField("weights", ArrayType(DoubleType())),
            StructField("reason", StringType()),
        ]
    )


class Maintainer(StatefulProcessor):
    """Applies users' events to their states, in order, and returns the changes of their vectors.

    Spark's key is a bucket of users, and its state a map from the users' own keys, since a call to Spark for each user
    would cost more than everything that is done for that user.
    """

    update = staticmethod(update_states)

    def __init__(self, params: Params) -> None:
        self._params = params

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark hands over the state store, once per partition and batch."""
        self._orders = handle.getMapState(STATE, "key binary", "state binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803, ARG002
        """All events of a bucket's users in this batch."""
        users: dict[bytes, list[Event]] = {}
        for user, own in _by_user(rows).items():
            events, rejected = parsed(own)
            yield from rejected
            if events:
                users[user] = events
        held = {user: self._orders.getValue((user,)) for user in users}
        updates = [Update(bytes(state[0]) if state else None, users[user]) for user, state in held.items()]
        for user, model in zip(held, self.update(self._params, updates), strict=True):
            name = users[user][0].user
            if isinstance(model, Model):
                self._orders.updateValue((user,), (model.state,))
                yield _change(name, UPDATED, items=model.vector.items, weights=model.vector.weights)
            elif model is None and held[user]:
                self._orders.removeKey((user,))
                yield _change(name, REMOVED)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:  # noqa: N802, N803, ARG002
        """A user who was loaded in batch, before the first micro-batch."""
        self._orders.updateValue((bytes(initialState["key"]),), (bytes(initialState["state"]),))


def _by_user(rows: Iterable[Row]) -> dict[bytes, list[Row]]:
    users: dict[bytes, list[Row]] = {}
    for row in rows:
        users.setdefault(bytes(row["key"]), []).append(row)
    return users


def parsed(rows: Iterable[Row]) -> tuple[list[Event], list[Row]]:
    """The events, in order, and a rejection for each row that is not a valid event."""
    events: list[Event] = []
    rejected: list[Row] = []
    for row in sorted(rows, key=_place):
        try:
            events.append(parse_event({name: row[name] for name in FIELDS if row[name] is not None}))
        except UnbasketError as error:
            rejected.append(_change(row["user"], REJECTED, reason=str(error)))
    return events, rejected


def _place(row: Row) -> tuple[bool, Any]:
    """The key to sort events by. Spark hands a struct to a stateful processor as a dict."""
    place = row["sequence"]
    return place is not None, tuple(place.values()) if isinstance(place, dict) else place


def _change(
    user: object,
    change: str,
    *,
    items: list[Any] | None = None,
    weights: list[float] | None = None,
    reason: str | None = None,
) -> Row:
    return Row(user=user, change=change, items=items, weights=weights, reason=reason)
