"""Joint incremental and decremental updates (paper, Algorithm 1): events of many users applied to their histories.

The paper's f_incr and f_decr are one operation here: events change the history, from which the vector is folded when it
is read. An executor needs no neighbors, so it builds no index.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from unbasket.domain.events import Allow, Change, Forget, Learn, Rename, decode_change
from unbasket.domain.ids import Id, IdTypes, in_order
from unbasket.domain.rejection import FAULTS, Reason, reason_of
from unbasket.domain.results import Learned
from unbasket.engine.histories import HistoryState
from unbasket.errors import InvalidIdError, UnbasketError
from unbasket.params import Params
from unbasket.spark.history_rows import Kinds, load_rows, rows_of, types_of
from unbasket.spark.sources import FAULT, JSON


class Rejection(NamedTuple):
    """An event that was rejected: its user, and the reason. A fault in parsing quotes no value."""

    user: Id | None
    reason: str
    fault: str | None = None


class Update(NamedTuple):
    """The users whose histories changed, and the number of users now minus that before."""

    rows: pa.Table
    added: int
    rejected: list[Rejection]


def parsed(events: pa.Table, kinds: Kinds) -> Iterator[Change | Rejection]:
    """Parse a table of events, in its order."""
    return map(partial(parse, types_of(kinds)), *(events[name].to_pylist() for name in ("user", "other", JSON, FAULT)))


def parse(
    types: IdTypes, user: Id | None, other: Id | None, text: bytes | None, fault: str | None
) -> Change | Rejection:
    """Parse the JSON of an event, which Spark has sent to the shard of its user, unless there is a fault already."""
    if fault is not None:
        return Rejection(user, fault, fault)
    try:
        event = decode_change(text or b"")
    except FAULTS as error:
        return Rejection(user, str(error), reason_of(error))
    try:
        event = event.in_types(types)
    except FAULTS as error:
        return Rejection(user, str(error), Reason.OTHER_TYPE if isinstance(error, InvalidIdError) else reason_of(error))
    if event.user != user or (isinstance(event, Rename) and event.other != other):
        return Rejection(user, "the event has more than one user, or more than one other", Reason.NO_EVENT)
    return event


def with_faults(events: DataFrame, kinds: Kinds) -> DataFrame:
    """Return the rows that hold no event, with their faults."""
    fault = sql.udf(partial(_fault_of, types_of(kinds)), "string")
    rows = events.where("hash is not null").withColumn(FAULT, fault("user", "other", JSON, FAULT))
    return rows.where(sql.col(FAULT).isNotNull())


def _fault_of(types: IdTypes, *columns: Any) -> str | None:
    event = parse(types, *columns)
    return str(event.fault) if isinstance(event, Rejection) else None


def update(params: Params, kinds: Kinds, rows: pa.Table, events: Iterable[Change | Rejection]) -> Update:
    """Apply events, in order, to the histories of all users that they are about."""
    state, rejected, changed = HistoryState(params), list[Rejection](), dict[Id, None]()
    events = list(events)
    state.items.add_all([item for event in events if isinstance(event, Learn) for item in event.items])
    load_rows(state, rows)
    known = set(state.users.codes)
    for event in events:
        if isinstance(event, Rejection):
            rejected.append(event)
            continue
        try:
            for user in _apply(state, event):
                changed[user] = None
        except UnbasketError as error:
            rejected.append(Rejection(event.user, str(error)))
    left = [user for user in changed if user in known or user in state.users]
    return Update(rows_of(state, left, kinds), len(state.users) - len(known), rejected)


def _apply(state: HistoryState, event: Change) -> tuple[Id, ...]:
    """Apply an event; return the users whose rows it changed."""
    match event:
        case Learn(user, items, basket, time):
            has_changed = state.learn(user, in_order(items), basket, time) is not Learned.UNCHANGED
        case Forget():
            has_changed = bool(state.forget(*event))
        case Allow():
            has_changed = state.allow(*event)
        case _:
            state.check(event)
            state.check_suppressions(event)
            if isinstance(event, Rename):
                state.rename(*event)
                return tuple(event)
            has_changed = state.suppress(*event)
    return (event.user,) if has_changed else ()
