"""Retention: the plan of rules, and a run on real files."""

import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.laws import law_of_equality
from tests.store.traffic import found_in

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.errors import RetentionError
from unbasket.store import audit
from unbasket.store.retention import plan, run
from unbasket.store.rules import Rule, Rules

NOW = datetime(2026, 1, 31, 4, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
UNITS = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1), "day": DAY}
CATEGORIES: dict[Id, str] = {"wine": "alcohol", "7": "alcohol", "milk": "dairy", "8": "dairy"}
ITEMS: list[Id] = [*CATEGORIES, "unknown to the catalog"]
USERS: list[Id] = ["ann", "bob", "17"]


def days_ago(days: float) -> int:
    """Return a time in seconds."""
    return int((NOW - days * DAY).timestamp())


def describe(rec: ub.Recommender) -> None:
    """Describe items with texts and with numbers as ids apart: a column has one type."""
    for kind in (str, int):
        items = [item for item in CATEGORIES if isinstance(item, kind)]
        rec.describe(pl.DataFrame({"item": items, "name": None, "category": [CATEGORIES[item] for item in items]}))


# The meaning of rules -------------------------------------------------------------------------------------------


class Bought(NamedTuple):
    """A basket to learn; its age in days, and units of time more or less."""

    user: Id
    basket: Id
    age: tuple[int, int] | None
    items: list[Id]


BOUGHT = st.builds(
    Bought,
    st.sampled_from(USERS),
    st.integers(1, 9).map(str) | st.sampled_from(["a", "b"]),
    st.none() | st.tuples(st.integers(1, 2), st.integers(-1, 1)),
    st.lists(st.sampled_from(ITEMS), min_size=1, max_size=4),
)
LISTED_ITEMS = st.lists(st.sampled_from(["wine", 7, "7", "8", "never bought"]), max_size=2)
LISTED_USERS = st.lists(st.sampled_from(["ann", 17, "17", "unknown"]), max_size=3)
RULES = st.builds(
    Rule,
    name=st.just("rule"),
    older_than_days=st.none() | st.integers(1, 2),
    category=st.none() | st.sampled_from(["alcohol", "dairy", "no such"]),
    items=st.none(),
    users=st.none() | LISTED_USERS,
).flatmap(lambda rule: st.just(rule) if rule.category else st.builds(rule._replace, items=st.none() | LISTED_ITEMS))


def forgets(rule: Rule, unit: timedelta, user: Id, basket: ub.Basket, item: Id) -> bool:
    """Whether a rule forgets a purchase, by the plainest definition."""
    if rule.older_than_days is not None and (
        basket.time is None or EPOCH + basket.time * unit >= NOW - rule.older_than_days * DAY
    ):
        return False
    if rule.category is not None and CATEGORIES.get(item) != rule.category:
        return False
    if rule.items is not None and str(item) not in map(str, rule.items):
        return False
    return rule.users is None or str(user) in map(str, rule.users)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(BOUGHT, min_size=1, max_size=20),
    st.lists(RULES.filter(lambda rule: rule[1:4] != (None, None, None)), min_size=1, max_size=3),
    st.sampled_from(list(UNITS)),
)
def test_a_run_forgets_what_its_rules_say_and_no_more(bought: list[Bought], rules: list[Rule], time_unit: str) -> None:
    unit = UNITS[time_unit]
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        ub.open(Path(folder) / "shop.db") as rec,
    ):
        patch.setattr("unbasket.store.retention._CHUNK", 3)
        for user, name, age, items in bought:
            time = None if age is None else (NOW - age[0] * DAY - EPOCH) // unit + age[1]
            rec.learn(user, items, basket=name, time=time)
        describe(rec)
        expected, purchases = ub.Recommender(rec.params, salt=rec.salt), [0] * len(rules)
        for user in rec.users():
            for basket in rec.history(user):
                kept = []
                for item in basket.items:
                    meant = [forgets(rule, unit, user, basket, item) for rule in rules]
                    if any(meant):
                        purchases[meant.index(True)] += 1
                    else:
                        kept.append(item)
                if kept:
                    expected.learn(user, kept, basket=basket.basket, time=basket.time)

        planned = plan(rec, Rules(rules, time_unit), NOW)
        outcome = run(rec, planned)

        describe(expected)  # the catalog decides on the type of items if there are no baskets
        law_of_equality(rec, expected)
        assert [rule.purchases for rule in planned.rules] == purchases
        assert outcome == (planned.forgotten, len(planned.events))
        assert [receipt.purchases > 0 for receipt in rec.receipts()] == [True] * outcome.receipts
        assert audit(rec.receipts()).ok
        assert not plan(rec, Rules(rules, time_unit), NOW).events


# A shop ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def db(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop" / "shop.db"


@pytest.fixture
def rec(db: Path) -> Iterator[ub.DurableRecommender]:
    with ub.open(db) as rec:
        rec.learn("ann", ["milk", "wine"], basket=1, time=days_ago(800))
        rec.learn("ann", ["milk", 7, "wine"], basket=2, time=days_ago(3))
        rec.learn("bob", ["milk", "wine"], basket=3, time=days_ago(2))
        rec.learn(17, [7], basket=4)
        describe(rec)
        yield rec


def test_a_plan_counts_and_changes_nothing(rec: ub.DurableRecommender, db: Path) -> None:
    digest, content = rec.digest(), checksums(db)
    planned = plan(rec, Rules([Rule("old", older_than_days=730), Rule("sober", category="alcohol")]), NOW)
    old, sober = planned.rules
    assert (old.users, old.baskets, old.purchases, old.untimed) == (1, 1, 2, 1)
    assert old.events == [ub.Forget("ann", 1, None)]
    assert old.warnings == ["baskets without a time, which are never too old: 1"]
    assert (sober.users, sober.baskets, sober.purchases) == (3, 3, 4)
    meant = [("17", "7"), ("ann", "7"), ("ann", "wine"), ("bob", "wine")]
    assert sober.events == [ub.Forget(user, None, item) for user, item in meant]
    assert planned.forgotten == (6, 2, 1)
    assert rec.digest() == digest
    assert checksums(db) == content


def checksums(db: Path) -> bytes:
    """Return checksums of all files beside the database, from another process, since this one has them open."""
    files = sorted(path for path in db.parent.iterdir() if not path.name.endswith("-shm"))
    return subprocess.run(["sha256sum", *files], check=True, capture_output=True).stdout


def test_a_category_for_listed_users(rec: ub.DurableRecommender) -> None:
    outcome = run(rec, plan(rec, Rules([Rule("sober", category="alcohol", users=["17", "bob"])]), NOW))
    assert outcome == ((2, 1, 1), 2)
    assert [basket.items for user in rec.users() for basket in rec.history(user)] == [
        ("milk", "wine"),
        ("7", "milk", "wine"),
        ("milk",),
    ]


def test_a_rule_without_a_condition_would_forget_everything(rec: ub.DurableRecommender) -> None:
    with pytest.raises(RetentionError, match="In rule 'all', state what to forget"):
        plan(rec, Rules([Rule("all")]), NOW)


@pytest.mark.parametrize(("time_unit", "oldest_kept"), [("s", 0), ("ms", 0), ("us", 0), ("day", 1)])
def test_the_last_time_that_is_not_too_old(db: Path, time_unit: str, oldest_kept: int) -> None:
    """A basket of exactly that age is kept. A day stands for its midnight, which is before four o'clock."""
    limit = (NOW - 30 * DAY - EPOCH) // UNITS[time_unit]
    with ub.open(db) as rec:
        for shift in (-1, 0, 1):
            rec.learn("ann", ["milk"], basket=shift, time=limit + shift)
        run(rec, plan(rec, Rules([Rule("month", older_than_days=30)], time_unit), NOW))
        assert [basket.basket for basket in rec.history("ann")] == list(range(oldest_kept, 2))


def test_an_old_category(rec: ub.DurableRecommender) -> None:
    planned = plan(rec, Rules([Rule("sober", older_than_days=730, category="alcohol")]), NOW)
    assert planned.events == [ub.Forget("ann", 1, "wine")]
    assert planned.rules[0].untimed == 1  # the basket with 7


def test_a_basket_that_is_learned_after_the_plan_stays(rec: ub.DurableRecommender) -> None:
    planned = plan(rec, Rules([Rule("old", older_than_days=1)]), NOW)
    rec.learn("bob", ["milk"], basket=5, time=days_ago(0))
    run(rec, planned)
    assert [basket.basket for basket in rec.history("bob")] == [5]


def test_a_second_run_warns_that_a_category_is_empty(rec: ub.DurableRecommender) -> None:
    rules = Rules([Rule("sober", category="alcohol")])
    assert run(rec, plan(rec, rules, NOW)).receipts == 4
    again = plan(rec, rules, NOW)
    assert not again.events
    assert again.rules[0].warnings == ["nothing that anybody bought is in the category 'alcohol'"]
    assert run(rec, again) == ((0, 0, 0), 0)


def test_near_names_of_an_unknown_category(rec: ub.DurableRecommender) -> None:
    [found] = plan(rec, Rules([Rule("sober", category="Alcohl")]), NOW).rules
    assert found.warnings == ["nothing that anybody bought is in the category 'Alcohl'; did you mean 'alcohol'?"]


def test_unknown_users_in_a_list(rec: ub.DurableRecommender) -> None:
    [found] = plan(rec, Rules([Rule("sober", category="alcohol", users=["ann", "17", "zoe", 18])]), NOW).rules
    assert found.users == 2
    assert found.warnings == ["listed users without baskets here: 2 of 4"]


@pytest.mark.parametrize("time_unit", ["ms", "us"])
def test_a_unit_that_would_forget_everything_is_an_error(rec: ub.DurableRecommender, time_unit: str) -> None:
    with pytest.raises(RetentionError, match=f"'old'.*unit '{time_unit}'.*newest time, {days_ago(2)}, is before 1980"):
        plan(rec, Rules([Rule("old", older_than_days=730)], time_unit), NOW)
    assert plan(rec, Rules([Rule("sober", category="alcohol")], time_unit), NOW).events


def test_a_unit_that_would_forget_nothing_is_a_warning(rec: ub.DurableRecommender) -> None:
    [found] = plan(rec, Rules([Rule("old", older_than_days=730)], "day"), NOW).rules
    assert not found.events
    assert f"even the oldest time, {days_ago(800)}, is in the future" in found.warnings[-1]


def test_no_byte_of_forgotten_data_is_left(db: Path, tmp_path: Path) -> None:
    """Neither ids nor product names, in any file beside the database, open or closed."""
    erased = ["user-e1f4a0c25b", "basket-5d1b7c9e02", "item-77aa01b3c4d", "Absinthe 93b1c2d7e8"]
    kept = ["user-0b6d9e8f7a1", "item-4c3b2a19f8e"]
    with ub.open(db) as rec:
        rec.learn(erased[0], [erased[2], kept[1]], basket=erased[1], time=days_ago(800))
        rec.learn(kept[0], [erased[2], kept[1]], basket=2, time=days_ago(1))
        rec.describe(pl.DataFrame({"item": [erased[2]], "name": [erased[3]], "category": ["alcohol"]}))
        assert found_in(db.parent, [*erased, *kept], tmp_path / "ids") == {*erased, *kept}
        rules = Rules([Rule("old", older_than_days=730), Rule("sober", category="alcohol", users=[kept[0]])])
        assert run(rec, plan(rec, rules, NOW)).receipts == 2
        assert found_in(db.parent, [*erased, *kept], tmp_path / "ids") == set(kept)
    assert found_in(db.parent, [*erased, *kept], tmp_path / "ids") == set(kept)


def test_progress_and_chunks(rec: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.store.retention._CHUNK", 3)
    calls: list[tuple[int, int]] = []
    run(rec, plan(rec, Rules([Rule("sober", category="alcohol")]), NOW), lambda *done: calls.append(done))
    assert calls == [(3, 4), (4, 4)]


def test_a_transaction_that_takes_long_has_fewer_events(
    rec: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unbasket.store.retention._CHUNK", 2)
    monkeypatch.setattr("unbasket.store.retention._TIME_LIMIT", 0)
    calls: list[tuple[int, int]] = []
    run(rec, plan(rec, Rules([Rule("sober", category="alcohol")]), NOW), lambda *done: calls.append(done))
    assert calls == [(2, 4), (3, 4), (4, 4)]
