"""Recommendations for unknown users: the policy chooses among popular items."""

from datetime import UTC, datetime

import pytest

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.engine.cold_start import ColdStart

NOW = int(datetime.now(UTC).timestamp())


@pytest.fixture
def shop() -> ub.Recommender:
    rec = ub.Recommender()
    rec.learn("ann", ["milk", "wine"], basket=1, time=NOW - 100 * 86_400)
    rec.learn("bob", ["milk", "tea"], basket=1, time=NOW - 86_400)
    rec.learn("cat", ["milk", "gin"], basket=1)
    return rec.describe({"item": ["wine", "gin", "tea"], "name": "a name", "category": ["cold", "cold", "hot"]})


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (ColdStart(), ["milk", "gin", "tea", "wine"]),
        (ColdStart(nothing=True), []),
        (ColdStart(days=30), ["milk", "tea"]),
        (ColdStart(days=30, time_unit="ms"), []),
        (ColdStart(category="cold"), ["gin", "wine"]),
        (ColdStart(category="cold", days=300), ["wine"]),
    ],
    ids=str,
)
def test_the_policies(shop: ub.Recommender, policy: ColdStart, expected: list[Id]) -> None:
    assert [item for item, _ in policy.items(shop, 10)] == expected


def test_a_requested_category_overrides_that_of_the_policy(shop: ub.Recommender) -> None:
    assert ColdStart(category="cold").items(shop, 10, category="hot") == [("tea", 1)]
    assert ColdStart().items(shop, 1, exclude=["milk"], only=["milk", "tea"]) == [("tea", 1)]


def test_recent_baskets_count(shop: ub.Recommender) -> None:
    [old], [recent], [untimed] = (shop.history(user) for user in ("ann", "bob", "cat"))
    assert [ColdStart().counts(basket) for basket in (old, recent, untimed)] == [True, True, True]
    assert [ColdStart(days=30).counts(basket) for basket in (old, recent, untimed)] == [False, True, False]
