"""A change of parameters: the model equals a fresh one, whatever the events before, meanwhile and afterwards.

A scenario that crosses state, model and both journals.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.laws import (
    NUMBERED,
    PARAMS,
    SPELLED_IDS,
    TEXT_IDS,
    ShopEvent,
    apply,
    law_of_equality,
    law_of_retraining,
    law_of_the_oracle,
    shards_are_small,
    short_histories_count_as_long,
)
from tests.oracle import Oracle

import unbasket as ub
from unbasket.errors import BusyError

__all__ = ["shards_are_small", "short_histories_count_as_long"]  # fixtures that all tests here use

SEQUENCES = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Change(NamedTuple):
    """A change of parameters, and the events before, meanwhile and afterwards."""

    old: ub.Params
    new: ub.Params
    before: list[ShopEvent]
    meanwhile: list[ShopEvent]
    after: list[ShopEvent]


EVENTS = SPELLED_IDS.shop_events(most=20)
EITHER_WAY = PARAMS | NUMBERED.map(lambda params: replace(params, grouping="count"))
CHANGES = st.builds(Change, EITHER_WAY, EITHER_WAY, EVENTS, EVENTS, SPELLED_IDS.shop_events(most=10))


@pytest.fixture(autouse=True, scope="module")
def one_user_at_a_time() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbasket.engine.model._CHUNK", 1)
        yield


def steps(rec: ub.Recommender, events: list[ShopEvent]) -> Callable[[int, int], None]:
    """Return a progress callback that applies an event at each step."""
    left = iter(events)

    def step(_done: int, _total: int) -> None:
        apply(rec, [event for event in (next(left, None),) if event is not None])

    return step


@SEQUENCES
@given(CHANGES, st.integers(0, 9))
def test_a_rebuild_in_memory_equals_a_fresh_model(change: Change, seed: int) -> None:
    rec = ub.Recommender(change.old)
    apply(rec, change.before)
    events = change.meanwhile[: len(rec)]
    rec.change_params(change.new, progress=steps(rec, events))
    apply(rec, change.after)
    oracle = Oracle(rec.params)
    apply(oracle, [*change.before, *events, *change.after])
    assert rec.params == change.new.seeded()
    law_of_the_oracle(rec, oracle)
    law_of_retraining(rec, ub.Recommender, seed)


@settings(SEQUENCES, max_examples=30)
@given(CHANGES, st.integers(0, 9))
def test_a_rebuild_on_disk_equals_a_fresh_model(change: Change, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        with ub.open(path, change.old) as rec:
            apply(rec, change.before)
            rec.change_params(change.new, progress=steps(rec, change.meanwhile[: len(rec)]))
            apply(rec, change.after)
            digest, params = rec.digest(), rec.params
            law_of_retraining(rec, ub.Recommender, seed)
        with ub.open(path) as again, ub.open(path, read_only=True) as reader:
            assert again.params == params
            assert again.digest() == digest
            law_of_equality(again, reader)


@settings(SEQUENCES, max_examples=30)
@given(NUMBERED, NUMBERED, TEXT_IDS.shop_events(most=20), st.integers(0, 9))
def test_varying_groups_stay_as_they_are(old: ub.Params, new: ub.Params, events: list[ShopEvent], seed: int) -> None:
    old = replace(old, grouping="varying")
    new = replace(new, grouping="varying", group_size=old.group_size)
    rec = ub.Recommender(old)
    apply(rec, events)
    groups = {user: rec.groups(user) for user in rec.users()}
    rec.change_params(new)
    assert {user: rec.groups(user) for user in rec.users()} == groups
    law_of_retraining(rec, ub.Recommender, seed)


def shop() -> ub.Recommender:
    rec = ub.Recommender(ub.Params(neighbors=2))
    for user in range(5):
        rec.learn(user, [user, user + 1, "milk"], basket=1)
    return rec


def test_a_shop_without_users_can_be_rebuilt() -> None:
    """The codes of forgotten users are given to others."""
    rec = shop()
    for user in rec.users():
        rec.forget(user)
    rec.change_params(ub.Params(neighbors=3))
    rec.learn("ann", ["milk", "tea"], basket=1)
    assert [item for item, _ in rec.recommend("ann")] == ["milk", "tea"]
    assert rec.verify().ok


def test_the_old_model_answers_until_the_new_one_is_complete() -> None:
    rec = shop()
    before = rec.recommend_many()
    seen = []

    def look(done: int, total: int) -> None:
        seen.append((done, total))
        assert rec.recommend_many() == before

    rec.change_params(ub.Params(neighbors=2, alpha=0.1), progress=look)
    assert seen == [(done, 5) for done in range(1, 6)]
    assert rec.recommend_many() != before


def test_a_change_that_fails_has_not_happened() -> None:
    rec = shop()
    digest, answers = rec.digest(), rec.recommend_many()

    def fail(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rec.change_params(ub.Params(alpha=0.1), progress=fail)
    assert (rec.digest(), rec.recommend_many(), rec.params) == (digest, answers, ub.Params(neighbors=2))
    assert rec.verify().ok
    rec.change_params(ub.Params(alpha=0.1))
    assert rec.params.alpha == 0.1


def test_one_change_at_a_time() -> None:
    rec = shop()
    with pytest.raises(BusyError, match="being changed already"):
        rec.change_params(ub.Params(alpha=0.1), progress=lambda *_: rec.change_params(ub.Params(alpha=0.2)))
    assert rec.params == ub.Params(neighbors=2)


def test_boundaries_of_varying_groups_are_history() -> None:
    rec = shop()
    problem = f"fixed groups of {rec.params.group_size} can't become varying groups of 2"
    with pytest.raises(ub.InvalidParamsError, match=problem):
        rec.change_params(ub.Params(group_size=2, grouping="varying", alpha=0.8))
    counted = ub.Recommender(ub.Params(grouping="count", alpha=0.8))
    with pytest.raises(ub.InvalidParamsError, match="can't become varying groups of 1"):
        counted.change_params(ub.Params(grouping="varying", alpha=0.8))
    rec.change_params(ub.Params(group_size=3, alpha=0.8))
    assert rec.params.group_size == 3


def test_a_database_keeps_the_seed_of_its_pool(tmp_path: Path) -> None:
    with ub.open(tmp_path / "shop.db", ub.Params(pool=3)) as rec:
        seed = rec.params.pool_seed
        rec.change_params(ub.Params(pool=5))
        assert rec.params.pool_seed == seed
        rec.change_params(ub.Params())
        rec.change_params(ub.Params(pool=5))
        assert rec.params.pool_seed is not None
    with pytest.raises(ub.InvalidParamsError, match="Leave them out"):
        ub.open(tmp_path / "shop.db", ub.Params(pool=3))
