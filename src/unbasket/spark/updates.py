"""Joint incremental and decremental updates (paper, Algorithm 1): events of many users applied to their histories.

The paper's f_incr and f_decr are one operation here: events change the history, from which the vector is folded when it
is read. An executor needs no neighbors, so it builds no index.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa

from unbasket.domain.events import Allow, Change, Forget, Learn, Rename, parse_change
from unbasket.domain.ids import NO_TYPES, Id, in_order
from unbasket.domain.results import Learned
from unbasket.engine.histories import HistoryState
from unbasket.errors import InvalidIdError, UnbasketError
from unbasket.params import Params
from unbasket.spark.history_rows import Kinds, flat, load_rows, rows_of
from unbasket.spark.sources import FAULT, FIELDS


class Rejection(NamedTuple):
    """An event that was rejected: its user, and the reason."""

    user: Id | None
    reason: str


class Update(NamedTuple):
    """The users whose histories changed, and the number of users now minus that before."""

    rows: pa.Table
    added: int
    rejected: list[Rejection]


def parsed(events: pa.Table) -> Iterator[Change | Rejection]:
    """Parse a table of events, in its order."""
    columns = [_lists(events["items"]) if name == "items" else events[name].to_pylist() for name in FIELDS]
    for fault, *values in zip(events[FAULT].to_pylist(), *columns, strict=True):
        try:
            if fault is not None:
                raise InvalidIdError(fault)
            yield _parsed(*values)
        except UnbasketError as error:
            yield Rejection(values[1], str(error))


def _parsed(event: Any, user: Any, basket: Any, item: Any, items: Any, time: Any, other: Any) -> Change:
    """Parse the fields of an event; the usual ones need no `parse_change`, which is slower."""
    if event == "learn" and item is other is None and basket is not None and items is not None:
        return Learn.checked(user, items, basket, time)
    if event == "forget" and items is time is other is None:
        return Forget.checked(user, basket, item)
    fields = zip(FIELDS, (event, user, basket, item, items, time, other), strict=True)
    return parse_change({name: value for name, value in fields if value is not None})


def _lists(column: pa.ChunkedArray) -> list[Any]:
    """Return lists of items, which may be null, as fast as flat ones."""
    lists = flat(column)
    values, ends = lists.values.to_pylist(), lists.offsets.to_pylist()
    valid = lists.is_valid().to_pylist()
    return [values[a:b] if there else None for (a, b), there in zip(pairwise(ends), valid, strict=True)]


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
            event = event.in_types(NO_TYPES)  # which refuses a rename to the same id
            state.check(event)
            state.check_suppressions(event)
            if isinstance(event, Rename):
                state.rename(*event)
                return tuple(event)
            has_changed = state.suppress(*event)
    return (event.user,) if has_changed else ()
