"""Updates of users without Spark: hundreds of random sequences in random batches."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import laws
from tests.laws import NUMBER_IDS, NUMBERED

from unbasket import Params, Recommender
from unbasket.domain.events import Event, Forget, Learn
from unbasket.domain.ids import Id
from unbasket.engine.histories import HistoryState
from unbasket.errors import SparkError
from unbasket.spark.user_state import Model, Unchanged, Update, decode, encode, update_states


def as_event(event: laws.Event) -> Event:
    if isinstance(event, laws.Learn):
        return Learn.checked(*event)
    return Forget(*event)


@settings(max_examples=300, deadline=None)
@given(params=NUMBERED, varying=st.booleans(), events=NUMBER_IDS.events(most=40), cuts=st.lists(st.integers(0, 40)))
def test_batches_of_events_equal_the_engine(
    params: Params, varying: bool, events: list[laws.Event], cuts: list[int]
) -> None:
    params = replace(params, grouping="varying" if varying else "fixed")
    engine = Recommender(params)
    laws.apply(engine, events)
    held: dict[Id, Model] = {}
    ends = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    for start, end in pairwise(ends):
        batch: dict[Id, list[Event]] = {}
        for event in events[start:end]:
            batch.setdefault(event.user, []).append(as_event(event))
        updates = [Update(held[user].state if user in held else None, own) for user, own in batch.items()]
        for user, model in zip(batch, update_states(params, updates), strict=True):
            if isinstance(model, Model):
                held[user] = model
            elif not isinstance(model, Unchanged):
                held.pop(user, None)
    vectors: dict[Id, Any] = {user: dict(zip(*model.vector, strict=True)) for user, model in held.items()}
    assert vectors == {user: engine.vector(user) for user in engine.users()}
    assert all([*vectors[user]] == [*engine.vector(user)] for user in vectors)
    restored = HistoryState(params)
    restored.load(decode([model.state for model in held.values()]))
    assert {user: encode(restored, user) for user in held} == {user: model.state for user, model in held.items()}


def test_states_of_another_version_are_named_as_such() -> None:
    with pytest.raises(SparkError, match="another version"):
        decode([msgspec.msgpack.encode((1, "ann", ["tea"], [1], b"", b"", b"", b""))])
