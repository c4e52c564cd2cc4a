"""A scenario across state, model and proof: a renamed user is as if learned under the other id; see also the laws."""

import pytest
from tests.laws import law_of_equality

import unbasket as ub
from unbasket.domain.events import Rename
from unbasket.engine.model import _METHODS, Model


@pytest.fixture
def shop() -> ub.Recommender:
    rec = ub.Recommender(ub.Params(neighbors=2, group_size=2, alpha=0.8))
    rec.learn("ann", ["milk", "bread"], basket=1, time=10)
    rec.learn("ann", ["milk"], basket=3, time=30)
    rec.learn("guest", ["milk", "gin"], basket=2, time=20)
    rec.learn("guest", ["tea"], basket=9, time=5)
    rec.learn("bob", ["milk", "wine", "tea"], basket=1, time=1)
    return rec


def test_a_merge_equals_learning_under_the_other_id(shop: ub.Recommender) -> None:
    shop.suppress("guest", "rum")
    shop.suppress("ann", "gin")
    assert shop.rename("guest", "ann") == (3, 2)
    assert "guest" not in shop
    assert [basket.basket for basket in shop.history("ann")] == [9, 1, 2, 3]
    assert shop.suppressed("ann") == ["gin", "rum"]
    fresh = ub.Recommender(shop.params)
    for user in ("bob", "ann"):
        for basket, time, items in shop.history(user):
            fresh.learn(user, items, basket=basket, time=time)
    for item in ("rum", "gin"):
        fresh.suppress("ann", item)
    law_of_equality(shop, fresh)
    assert shop.verify().ok


def test_a_new_id(shop: ub.Recommender) -> None:
    history = shop.history("guest")
    shop.rename("guest", 7)
    assert shop.history(7) == history
    assert shop.users() == ["7", "ann", "bob"]
    with pytest.raises(ub.InvalidEventError, match="'7' can't be renamed to the same id"):
        shop.rename(7, "7")
    assert shop.verify().ok


@pytest.mark.parametrize(
    ("user", "other", "error", "match"),
    [
        ("ann", "bob", ub.BasketConflictError, "users 'ann' and 'bob' both have a basket 1"),
        ("unknown", "ann", ub.UnknownUserError, "unknown"),
        ("ann", "ann", ub.InvalidEventError, "the same id"),
        ("ann", "", ub.InvalidIdError, "user"),
    ],
)
def test_an_invalid_rename_changes_nothing(
    shop: ub.Recommender, user: str, other: str, error: type[Exception], match: str
) -> None:
    before = shop.digest()
    with pytest.raises(error, match=match):
        shop.rename(user, other)
    assert shop.digest() == before


def test_the_proof_can_fail(shop: ub.Recommender, monkeypatch: pytest.MonkeyPatch) -> None:
    model = shop._model
    assert model.apply_with_proof(Rename("guest", "ann")).verified
    assert model.apply_with_proof(Rename("ann", "new")).verified
    rename = Model._rename

    def leaking(self: Model, event: Rename) -> ub.Renamed:
        renamed = rename(self, event)
        self.state.suppressed[event.user] = {"milk"}
        return renamed

    def losing(self: Model, event: Rename) -> ub.Renamed:
        renamed = rename(self, event)
        self._forget(ub.Forget("bob", None, None))
        return renamed

    for wrong in (losing, leaking):
        monkeypatch.setitem(_METHODS, Rename, wrong)
        assert not model.apply_with_proof(Rename("new", "ann")).verified
        monkeypatch.setitem(_METHODS, Rename, rename)
        model.apply([Rename("ann", "new")])
