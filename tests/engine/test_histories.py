"""Histories without an index: every event changes them as it changes those of an engine."""

import random

import pytest

from unbasket.domain.ids import Id
from unbasket.engine.histories import HistoryState
from unbasket.engine.state import EngineState
from unbasket.params import Grouping, Params

GROUPINGS: list[Grouping] = ["fixed", "varying"]


def apply_random_event(states: list[HistoryState], chance: random.Random) -> None:
    """Apply one event to all states; check that it has the same result."""
    user, basket = chance.randrange(9), f"b{chance.randrange(9)}"
    item = chance.randrange(9)
    results: set[object]
    if chance.random() < 0.6:
        items: list[Id] = [*chance.sample(range(9), chance.randint(1, 4))]
        time = chance.choice([None, chance.randrange(5)])
        results = {state.learn(user, items, basket, time) for state in states}
    else:
        what = chance.choice([(None, None), (basket, None), (basket, item), (None, item)])
        results = {state.forget(user, *what) for state in states}
    assert len(results) == 1


@pytest.mark.parametrize("pool", [None, 3])
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("seed", range(3))
def test_events_and_loads_give_the_histories_of_an_engine(grouping: Grouping, pool: int | None, seed: int) -> None:
    params = Params(group_size=2, grouping=grouping, pool=pool, alpha=0.8)
    histories, engine, chance = HistoryState(params), EngineState(params), random.Random(seed)
    for _ in range(300):
        apply_random_event([histories, engine], chance)
    loaded = HistoryState(params)
    loaded.load(engine.columns(engine.users.sorted()))
    for state in (histories, loaded):
        assert state.users.sorted() == engine.users.sorted()
        assert state.items.sorted() == engine.items.sorted()
        for user in engine.users.sorted():
            assert state.history(user) == engine.history(user)
            assert [record.opens for record in state.records(user)] == [r.opens for r in engine.records(user)]
    assert histories.orphaned_items == engine.orphaned_items
