"""Joint incremental and decremental updates (paper, Algorithm 1): events of many users applied to their histories.

The paper's f_incr and f_decr are one operation here: events change the history, from which the vector is folded when it
is read. An executor needs no neighbors, so it builds no index: rows go into the engine's histories, and come out.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from unbasket.core.model import FoldWorkspace, queries
from unbasket.domain.events import Allow, Change, Forget, Learn, Rename, decode_change
from unbasket.domain.history_table import to_columns, to_lists, to_table
from unbasket.domain.ids import Id, IdTypes, in_order
from unbasket.domain.rejection import FAULTS, Reason, reason_of
from unbasket.domain.results import Learned
from unbasket.engine.histories import HistoryState
from unbasket.errors import InvalidIdError, UnbasketError
from unbasket.params import Params
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


def parsed(events: pa.Table, types: IdTypes) -> list[Change | Rejection]:
    """Parse a table of events, in its order."""
    columns = (events[name].to_pylist() for name in ("user", "other", JSON, FAULT))
    return [*map(partial(parse, types), *columns)]


def parse(
    types: IdTypes, user: Id | None, other: Id | None, text: bytes | None, fault: str | None
) -> Change | Rejection:
    """Parse the JSON of an event, which Spark has sent to the shard of its user, unless there is a fault already."""
    if fault is not None:
        return Rejection(user, fault, fault)
    event = None
    try:
        event = decode_change(text or b"")
        event = event.in_types(types)
    except FAULTS as error:
        is_other = event is not None and isinstance(error, InvalidIdError)
        return Rejection(user, str(error), Reason.OTHER_TYPE if is_other else reason_of(error))
    if event.user != user or (isinstance(event, Rename) and event.other != other):
        return Rejection(user, "the event has more than one user, or more than one other", Reason.NO_EVENT)
    return event


def with_faults(events: DataFrame, types: IdTypes) -> DataFrame:
    """Return the rows that hold no event, with their faults."""

    @sql.udf("string")
    def fault(*columns: Any) -> str | None:
        event = parse(types, *columns)
        return str(event.fault) if isinstance(event, Rejection) else None

    rows = events.where("hash is not null").withColumn(FAULT, fault("user", "other", JSON, FAULT))
    return rows.where(sql.col(FAULT).isNotNull())


def update(params: Params, types: IdTypes, rows: pa.Table, events: Sequence[Change | Rejection]) -> Update:
    """Apply events, in order, to the histories of all users that they are about."""
    state, rejected, changed = HistoryState(params), list[Rejection](), dict[Id, None]()
    state.items.add_all([item for event in events if isinstance(event, Learn) for item in event.items])
    state.load(*to_columns(rows))
    known = set(state.users.codes)
    for event in events:
        try:
            if isinstance(event, Rejection):
                rejected.append(event)
            elif _apply(state, event):
                changed[event.user] = None
                if isinstance(event, Rename):
                    changed[event.other] = None
        except UnbasketError as error:
            rejected.append(Rejection(event.user, str(error)))
    held = [user for user in changed if user in state.users]
    gone = [user for user in changed if user in known and user not in state.users]
    columns = state.columns(held)._replace(users=[*held, *gone])  # which makes tombstones of those without baskets
    return Update(to_table(columns, state.suppressed, types), len(state.users) - len(known), rejected)


def _apply(state: HistoryState, event: Change) -> bool:
    """Apply an event; return whether it changed a history."""
    match event:
        case Learn(user, items, basket, time):
            return state.learn(user, in_order(items), basket, time) is not Learned.UNCHANGED
        case Forget():
            return bool(state.forget(*event))
        case Allow():
            return state.allow(*event)
    state.check(event)
    state.check_suppressions(event)
    return bool(state.rename(*event)) if isinstance(event, Rename) else state.suppress(*event)


def vector_table(rows: pa.Table, params: Params) -> pa.Table:
    """Fold histories into vectors (Eq. uservector): user, items in the order of ids, and weights before rounding."""
    state, users = HistoryState(params), np.arange(len(rows))  # their codes in an empty state
    state.load(*to_columns(rows))
    ends, codes, weights, _ = queries.vectors(state.histories, FoldWorkspace(), state.rule, users)
    lengths = np.diff(ends, prepend=0)
    order = np.lexsort((state.items.labels[codes], np.repeat(users, lengths)))
    items = pa.array(state.items.names, rows.schema.field("suppressed").type.value_type).take(pa.array(codes[order]))
    lists = [to_lists(values, lengths) for values in (items, pa.array(weights[order]))]
    return pa.table([rows["user"], *lists], names=["user", "items", "weights"])
