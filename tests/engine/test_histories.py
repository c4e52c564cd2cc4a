"""Histories without an index: every event changes them as it changes those of an engine."""

import random

import pytest

import unbasket as ub
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


@pytest.mark.parametrize(
    "params", [ub.Params(), ub.Params(grouping="varying", alpha=0.5), ub.Params(pool=5, pool_seed=1)]
)
@pytest.mark.parametrize("as_text", [False, True])
def test_a_batch_equals_its_events_one_by_one(params: ub.Params, as_text: bool) -> None:
    """New users and items, edits, late baskets, baskets of one time, and histories that become long."""
    chance, spell = random.Random(1), str if as_text else int
    events: list[ub.Event] = []
    for _ in range(3000):
        user, basket = spell(int(chance.expovariate(0.3))), spell(chance.randrange(1500))
        if chance.random() < 0.02:
            events.append(ub.Forget(user, basket, None))
        else:
            items = [spell(chance.randrange(10 + len(events))) for _ in range(3)]
            events.append(ub.Learn(user, items, basket, chance.choice([None, chance.randrange(4000)])))
    rec, alone = ub.Recommender(params), ub.Recommender(params)
    results = rec.apply(events[:2000]) + rec.apply(events[2000:])
    assert results == [alone.apply([event])[0] for event in events]
    assert len(rec.history(spell(0))) > 512
    assert rec.digest() == alone.digest()
    assert rec.verify().ok
