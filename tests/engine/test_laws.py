"""The laws of tests/laws.py on the engine in memory: more than a thousand random sequences of events per run."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.small_shop import GROUPINGS
from tests.laws import (
    NUMBER_IDS,
    NUMBERED,
    PARAMS,
    SPELLED_IDS,
    TEXT_IDS,
    Event,
    Forget,
    Learn,
    ShopEvent,
    apply,
    law_of_equality,
    law_of_one_person,
    law_of_retraining,
    law_of_the_cart,
    law_of_the_oracle,
    shards_are_small,
    short_histories_count_as_long,
)
from tests.oracle import Id, Oracle

from unbasket import Params, Recommender
from unbasket.params import Grouping

__all__ = ["shards_are_small", "short_histories_count_as_long"]  # autouse fixtures

SEQUENCES = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SHOP = pl.DataFrame(
    {
        "user": ["t", "t", "t", "w", "w", "s"],
        "basket": ["a", "a", "c", "a", "b", "g"],
        "item": ["p", "q", "p", "x", "y", "z"],
        "time": [1, 1, 2, 1, 5, 0],
    }
)


def keep_the_laws(params: Params, events: list[ShopEvent], seed: int) -> None:
    engine, oracle = Recommender(params), Oracle(params)
    assert apply(engine, events) == apply(oracle, events)
    law_of_one_person(engine)
    law_of_the_oracle(engine, oracle)
    law_of_retraining(engine, Recommender, seed)


@SEQUENCES
@given(params=PARAMS, events=NUMBER_IDS.shop_events(most=40), seed=st.integers(0, 99))
def test_fixed_groups(params: Params, events: list[ShopEvent], seed: int) -> None:
    keep_the_laws(params, events, seed)


@SEQUENCES
@given(params=PARAMS, events=SPELLED_IDS.shop_events(most=40), seed=st.integers(0, 99))
def test_ids_in_any_spelling(params: Params, events: list[ShopEvent], seed: int) -> None:
    keep_the_laws(params, events, seed)


@SEQUENCES
@given(params=NUMBERED, events=TEXT_IDS.shop_events(most=40), seed=st.integers(0, 99))
def test_varying_groups(params: Params, events: list[ShopEvent], seed: int) -> None:
    keep_the_laws(replace(params, grouping="varying"), events, seed)


@SEQUENCES
@given(params=NUMBERED, events=NUMBER_IDS.shop_events(most=40), seed=st.integers(0, 99))
def test_counted_groups(params: Params, events: list[ShopEvent], seed: int) -> None:
    keep_the_laws(replace(params, grouping="count"), events, seed)


@SEQUENCES
@given(params=PARAMS, events=TEXT_IDS.shop_events(most=25), seed=st.integers(0, 99))
def test_on_top_of_a_loaded_shop(params: Params, events: list[ShopEvent], seed: int) -> None:
    """A loaded engine has hubs from the start, which the events then change."""
    engine = Recommender(params).fit(SHOP)
    apply(engine, events)
    law_of_retraining(engine, Recommender, seed)


@settings(max_examples=200, deadline=None)
@given(params=PARAMS, events=NUMBER_IDS.events(most=15), extra=NUMBER_IDS.events(most=15))
def test_learn_then_forget_is_the_identity(params: Params, events: list[Event], extra: list[Event]) -> None:
    """Visitors are learned, interleaved with other events, and forgotten: the engine is as without them."""
    visitors = [event._replace(user=1000 + int(event.user)) for event in extra]
    visited, plain = Recommender(params), Recommender(params)
    for i in range(max(len(events), len(visitors))):
        apply(visited, events[i : i + 1] + visitors[i : i + 1])
        apply(plain, events[i : i + 1])
    for event in visitors:
        visited.forget(event.user)
    law_of_equality(visited, plain)


@settings(max_examples=100, deadline=None)
@given(params=PARAMS, events=SPELLED_IDS.shop_events(most=20), event=SPELLED_IDS.shop_events(most=1))
def test_repeating_an_event_changes_nothing(params: Params, events: list[ShopEvent], event: list[ShopEvent]) -> None:
    once, twice = Recommender(params), Recommender(params)
    apply(once, events + event)
    apply(twice, events + event + event)
    law_of_equality(once, twice)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(params=PARAMS, events=NUMBER_IDS.shop_events(most=40), seed=st.integers(0, 99), priorities=st.integers(1, 2))
def test_equal_priorities_are_in_the_order_of_ids(
    params: Params, events: list[ShopEvent], seed: int, priorities: int
) -> None:
    def few(user: Id) -> int:
        return len(str(user)) % priorities

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbasket.engine.state.PoolPriorities._hash", lambda _, user: few(user).to_bytes(8, "big"))
        patch.setattr("tests.oracle.priority", lambda _, user: few(user))
        keep_the_laws(params, events, seed)


@settings(max_examples=200, deadline=None)
@given(params=PARAMS, events=TEXT_IDS.shop_events(most=25), grouping=st.sampled_from(GROUPINGS), data=st.data())
def test_a_cart_is_the_newest_basket(
    params: Params, events: list[ShopEvent], grouping: Grouping, data: st.DataObject
) -> None:
    """For known users and a new one, with known and unknown items."""
    engine = Recommender(params if params.alpha == "learned" else replace(params, grouping=grouping))
    apply(engine, events)
    for user in (*engine.users(), "new user"):
        cart = data.draw(st.lists(st.sampled_from([*TEXT_IDS.items, "new", 9]), min_size=1, unique=True))
        law_of_the_cart(engine, user, cart)


def test_the_laws_can_fail() -> None:
    """Each law detects an engine that missed one item."""
    params = Params(neighbors=2)
    events: list[Event] = [Learn("t", ("x", "z"), 1, 1), Learn("m", ("x",), 1, 1)]
    engine, oracle = Recommender(params), Oracle(params)
    apply(engine, [*events, Forget("t", 1, "z")])
    apply(oracle, events)
    with pytest.raises(AssertionError):
        law_of_the_oracle(engine, oracle)
    other = Recommender(params)
    apply(other, events)
    with pytest.raises(AssertionError):
        law_of_equality(engine, other)
