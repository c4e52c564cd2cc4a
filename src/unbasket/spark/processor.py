"""What Spark's executors run for each user with events in a micro-batch."""

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, DataType, DoubleType, StringType, StructField, StructType

from unbasket.errors import UnbasketError
from unbasket.events import Event, parse_event
from unbasket.params import Params
from unbasket.spark.sources import FIELDS
from unbasket.spark.updating import update_state

UPDATED, REMOVED, REJECTED = "updated", "removed", "rejected"

STATE = "state binary"


def change_schema(user: DataType, item: DataType) -> StructType:
    """A change of the model: a user's new vector, that he is gone, or an event that is none, and why."""
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
    """Lets a user's events happen to his state, in their order, and says what became of his vector."""

    def __init__(self, params: Params) -> None:
        self._params = params

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark hands over the state store, once per partition and batch."""
        self._state = handle.getValueState("orders", STATE)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803, ARG002
        """All events of one user in this batch."""
        events, rejected = _parsed(rows)
        yield from rejected
        if not events:
            return
        held = self._state.get()
        model, changed = update_state(self._params, bytes(held[0]) if held else None, events)
        if not changed:
            return
        if model is not None:
            self._state.update((model.state,))
            yield _change(events[0].user, UPDATED, items=model.vector.items, weights=model.vector.weights)
        elif held:
            self._state.clear()
            yield _change(events[0].user, REMOVED)

    def handleInitialState(self, key: Any, initialState: Row, timerValues: Any) -> None:  # noqa: N802, N803, ARG002
        """A user who was loaded in batch, before the first micro-batch."""
        self._state.update((bytes(initialState["state"]),))


def _parsed(rows: Iterable[Row]) -> tuple[list[Event], list[Row]]:
    """The events in their order, and what is to be said of rows that are none."""
    events: list[Event] = []
    rejected: list[Row] = []
    for row in sorted(rows, key=_place):
        try:
            events.append(parse_event({name: row[name] for name in FIELDS if row[name] is not None}))
        except UnbasketError as error:
            rejected.append(_change(row["user"], REJECTED, reason=str(error)))
    return events, rejected


def _place(row: Row) -> tuple[bool, Any]:
    """What an event is sorted by. Spark gives a struct to a stateful processor as a dict."""
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
