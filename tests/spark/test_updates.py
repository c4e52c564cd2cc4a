"""Updates of histories without Spark: hundreds of random sequences in random batches."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import laws
from tests.laws import NUMBER_IDS, NUMBERED

from unbasket import Params, Recommender
from unbasket.domain import events as domain
from unbasket.domain.events import Change
from unbasket.domain.history_table import history_schema
from unbasket.domain.ids import Id, IdTypes
from unbasket.spark.updates import Rejection, update, vector_table

TYPES = IdTypes(int, int, int)


def as_change(event: laws.ShopEvent) -> Change | None:
    """Return the event of a stream; hidden items are no part of it."""
    kind: Any = getattr(domain, type(event).__name__, None)
    return None if kind is None else kind.checked(*event)


@settings(max_examples=300, deadline=None)
@given(
    params=NUMBERED, varying=st.booleans(), events=NUMBER_IDS.shop_events(most=40), cuts=st.lists(st.integers(0, 40))
)
def test_batches_of_events_equal_the_engine(
    params: Params, varying: bool, events: list[laws.ShopEvent], cuts: list[int]
) -> None:
    params = replace(params, grouping="varying" if varying else "fixed")
    engine, held = Recommender(params), dict[Id, dict[str, Any]]()
    ends = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    for start, end in pairwise(ends):
        batch = events[start:end]
        laws.apply(engine, batch)
        before, rows = len(held), pa.Table.from_pylist([*held.values()], history_schema(TYPES))
        result = update(params, TYPES, rows, [change for event in batch if (change := as_change(event)) is not None])
        for row in result.rows.to_pylist():
            held.pop(row["user"], None)
            if row["baskets"]:
                held[row["user"]] = row
        assert len(held) - before == result.added
    rows = pa.Table.from_pylist([*held.values()], history_schema(TYPES))
    vectors = {
        row["user"]: dict(zip(row["items"], row["weights"], strict=True))
        for row in vector_table(rows, params).to_pylist()
    }
    assert vectors == {user: engine.vector(user) for user in engine.users()}
    assert all([*vectors[user]] == [*engine.vector(user)] for user in vectors)
    assert {user: row["suppressed"] for user, row in held.items()} == {user: engine.suppressed(user) for user in held}
    assert {user: [tuple(basket["items"]) for basket in row["baskets"]] for user, row in held.items()} == {
        user: [basket.items for basket in engine.history(user)] for user in held
    }


def test_suppressions_and_tombstones_from_batch_to_batch() -> None:
    events: list[Change] = [domain.Learn(user, [1], 7, None) for user in (1, 2)]
    first = update(Params(), TYPES, history_schema(TYPES).empty_table(), [*events, domain.Suppress(1, 5)])
    assert (first.added, first.rows["suppressed"].to_pylist()) == (2, [[5], []])
    second = update(Params(), TYPES, first.rows, [domain.Learn(1, [1], 8, None), domain.Forget(2, None, None)])
    rows = [(row["user"], len(row["baskets"]), row["suppressed"]) for row in second.rows.to_pylist()]
    assert (second.added, rows) == (-1, [(1, 2, [5]), (2, 0, [])])


def test_changes_that_are_refused_change_nothing() -> None:
    empty = history_schema(TYPES).empty_table()
    learns: list[Change] = [domain.Learn(user, [1], 7, None) for user in (1, 2)]
    refused: list[Change] = [domain.Suppress(3, 1), domain.Rename(3, 1), domain.Rename(1, 1), domain.Rename(1, 2)]
    result = update(Params(), TYPES, empty, [*learns, *refused, Rejection(5, "no such event")])
    assert [row["user"] for row in result.rows.to_pylist()] == [1, 2]
    assert [event.user for event in result.rejected] == [3, 3, 1, 1, 5]
    assert "both have a basket 7" in result.rejected[3][1]
    full = update(Params(), TYPES, empty, [*learns, *(domain.Suppress(1, item) for item in range(1001))])
    assert [len(row["suppressed"]) for row in full.rows.to_pylist()] == [1000, 0]
    assert len(full.rejected) == 1
