"""A scenario across state, digest and queries: suppressions are personal data. tests/store checks durability."""

import pytest

import unbasket as ub
from unbasket.domain.events import Suppress
from unbasket.domain.ids import Id
from unbasket.engine.histories import MAX_SUPPRESSIONS
from unbasket.engine.state import EngineState


@pytest.fixture
def shop() -> ub.Recommender:
    rec = ub.Recommender(ub.Params(neighbors=2, alpha=0.5))
    rec.learn("ann", ["milk", "bread"], basket=1, time=1)
    rec.learn("bob", ["milk", "wine", "tea"], basket=1, time=1)
    return rec


def names(found: list[ub.Recommendation]) -> set[Id]:
    return {item for item, _ in found}


def test_a_suppressed_item_is_not_recommended_to_the_user(shop: ub.Recommender) -> None:
    shop.forget("ann", item="milk")
    assert "milk" in names(shop.recommend("ann", only_new=True))  # similar shoppers bring it back
    assert shop.suppress("ann", "milk")
    assert not shop.suppress("ann", "milk")
    for found in (
        shop.recommend("ann"),
        shop.recommend("ann", only_new=True, only=["milk", "wine", "tea"]),
        shop.recommend("ann", cart=["bread"]),
        shop.recommend_many()["ann"],
        shop.recommend_for([["bread"]], user="ann"),
    ):
        assert "milk" not in names(found)
        assert "wine" in names(found)
    assert "milk" in names(shop.recommend("bob"))
    assert "milk" in names(shop.recommend_for([["bread"]]))
    assert "milk" in {item for item, _ in shop.popular()}
    assert (shop.suppressed("ann"), shop.suppressed("bob")) == (["milk"], [])
    assert shop.allow("ann", "milk")
    assert not shop.allow("ann", "milk")
    assert "milk" in names(shop.recommend("ann"))


def test_a_suppression_outlives_the_item(shop: ub.Recommender) -> None:
    shop.suppress("ann", "wine")
    shop.forget("bob")
    assert shop.suppressed("ann") == ["wine"]
    shop.learn("cleo", ["wine", "milk"], basket=1)
    assert "wine" not in names(shop.recommend("ann"))


def test_suppressions_are_removed_with_the_user(shop: ub.Recommender) -> None:
    fresh = shop.digest()
    shop.suppress("ann", "wine")
    shop.learn("ann", ["tea"], basket=1, time=9)  # the only basket moves, and ann stays
    assert shop.suppressed("ann") == ["wine"]
    shop.forget("ann", basket=1)
    for method in (shop.suppressed, lambda user: shop.suppress(user, "milk")):
        with pytest.raises(ub.UnknownUserError, match="nothing is held about user 'ann'"):
            method("ann")
    assert not shop.allow("ann", "wine")
    shop.learn("ann", ["milk", "bread"], basket=1, time=1)
    assert shop.suppressed("ann") == []
    assert shop.digest() == fresh
    assert shop.verify().ok


def test_suppressions_are_in_the_digest(shop: ub.Recommender) -> None:
    seen = {shop.digest()}
    for user, item in (("ann", "wine"), ("ann", "gin"), ("bob", "wine"), ("ann", 1), ("ann", "1")):
        shop.suppress(user, item)
        seen.add(shop.digest())
    assert len(seen) == 5  # 1 is "1" here
    other = ub.Recommender(shop.params)
    other.learn("bob", ["milk", "wine", "tea"], basket=1, time=1)
    other.learn("ann", ["milk", "bread"], basket=1, time=1)
    for user, item in (("ann", "1"), ("bob", "wine"), ("ann", 1), ("ann", "gin"), ("ann", "wine")):
        other.suppress(user, item)
    assert other.digest() == shop.digest()
    assert shop.verify().ok


def test_verify_finds_orphaned_and_changed_suppressions(shop: ub.Recommender) -> None:
    shop.suppress("ann", "wine")
    shop.digest()
    state: EngineState = shop._state
    state.suppressed["gone"] = {"milk"}
    assert shop.verify().mismatches == ("an orphaned record in the suppressions",)
    assert not shop.verify("gone").ok
    del state.suppressed["gone"]
    state.suppressed["ann"].add("behind the digest's back")
    assert shop.verify("ann").mismatches == ("the digest of user 'ann'",)


def test_bad_ids(shop: ub.Recommender) -> None:
    for call in (shop.suppress, shop.allow):
        with pytest.raises(ub.InvalidIdError):
            call("ann", "")


def test_the_suppressions_of_a_user_are_limited(shop: ub.Recommender) -> None:
    for item in range(MAX_SUPPRESSIONS):
        assert shop.suppress("ann", item)
    before = shop.digest()
    with pytest.raises(
        ub.InvalidEventError, match=r"'ann' would have 1,001 suppressed items, of at most 1,000\. Allow"
    ):
        shop.suppress("ann", "wine")
    assert not shop.suppress("ann", 7)  # a repetition adds none
    assert (shop.digest(), shop.verify().ok) == (before, True)
    shop.allow("ann", 7)
    assert shop.suppress("ann", "wine")


def test_a_merge_does_not_exceed_the_limit(shop: ub.Recommender) -> None:
    shop.learn("guest", ["tea"], basket=9)
    for item in range(MAX_SUPPRESSIONS):
        shop.suppress("ann", item)
    shop.suppress("guest", 7)
    shop.suppress("guest", "wine")
    before = shop.digest()
    with pytest.raises(ub.InvalidEventError, match="'ann' would have 1,001 suppressed items"):
        shop.rename("guest", "ann")
    assert shop.digest() == before
    shop.allow("guest", "wine")
    shop.rename("guest", "ann")
    assert len(shop.suppressed("ann")) == MAX_SUPPRESSIONS


def test_more_suppressions_of_an_earlier_version_are_kept(shop: ub.Recommender) -> None:
    shop._model.apply([Suppress("ann", str(item)) for item in range(MAX_SUPPRESSIONS + 9)])
    assert not shop.suppress("ann", 7)
    with pytest.raises(ub.InvalidEventError, match="would have 1,010"):
        shop.suppress("ann", "wine")
    assert shop.allow("ann", 7)
    assert shop.verify().ok
