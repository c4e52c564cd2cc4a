"""What is hidden is recommended to nobody; that a durable engine keeps it is in tests/store/test_durable.py."""

import pytest

import unbasket as ub
from unbasket.domain.ids import Id


@pytest.fixture
def shop() -> ub.Recommender:
    rec = ub.Recommender(ub.Params(neighbors=2, alpha=0.5))
    rec.learn("ann", ["milk", "bread"], basket=1, time=1)
    rec.learn("bob", ["milk", "wine", "tea"], basket=1, time=1)
    return rec


def names(found: list[ub.Recommendation] | list[ub.ItemCount]) -> set[Id]:
    return {item for item, _ in found}


def test_what_is_hidden_is_recommended_to_nobody(shop: ub.Recommender) -> None:
    assert names(shop.recommend("ann")) == {"milk", "bread", "wine", "tea"}
    assert shop.hide(["milk", "tea", "milk"]) == 2
    assert shop.hidden() == ["milk", "tea"]
    for found in (
        shop.recommend("ann"),
        shop.recommend("ann", cart=["tea"]),
        shop.recommend("somebody new", cart=["something new"]),
        shop.recommend_many()["ann"],
        shop.recommend_for([["milk"], ["unheard of", "bread"]], exclude=["unheard of"]),
        shop.popular(),
        shop.popular(since=0),
    ):
        assert names(found) == {"bread", "wine"}
    assert set(shop.recommend_frame()["item"]) == {"bread", "wine"}
    assert names(shop.recommend("ann", only=["milk", "wine"], only_new=True)) == {"wine"}
    assert names(shop.recommend("ann", n=2)) == {"bread", "wine"}  # before the cut
    assert shop.show(["milk", "gin"]) == 1
    assert names(shop.recommend("ann")) == {"milk", "bread", "wine"}


def test_what_is_hidden_goes_on_training(shop: ub.Recommender) -> None:
    other = ub.Recommender(shop.params)
    shop.hide(["milk"])
    for rec in (shop, other):
        rec.forget("bob")
        rec.learn("ann", ["milk", "bread"], basket=1, time=1)
        rec.learn("bob", ["milk"], basket=2)
    assert shop.vector("bob") == {"milk": other.vector("bob")["milk"]}
    assert shop.similar_users("ann") == other.similar_users("ann")
    assert shop.explain("ann", "milk") == other.explain("ann", "milk")
    assert shop.digest() == other.digest()
    assert shop.verify().ok


def test_it_stays_hidden_when_nobody_has_it_any_longer(shop: ub.Recommender) -> None:
    shop.hide(["wine", "never bought"])
    shop.forget("bob")
    assert shop.items() == ["bread", "milk"]
    assert shop.hidden() == ["never bought", "wine"]
    shop.recommend("ann")
    shop.learn("cleo", ["wine", "never bought", "rum"], basket=1)
    assert names(shop.recommend("cleo")) == {"bread", "milk", "rum"}


def test_another_item_under_the_code_of_a_hidden_one_is_recommended(shop: ub.Recommender) -> None:
    shop.hide(["wine"])
    shop.recommend("ann")
    shop.forget("bob", item="wine")
    shop.learn("bob", ["rum"], basket=2)
    assert "rum" in names(shop.recommend("ann"))


def test_all_or_nothing(shop: ub.Recommender) -> None:
    assert shop.set_availability(hide=["milk"], show=["tea"]) == (1, 0)
    assert shop.set_availability(hide=["tea"], show=["milk"]) == (1, 1)
    with pytest.raises(ub.InvalidRequestError, match="item 'milk' can't be hidden and shown at once"):
        shop.set_availability(hide=["milk", "bread"], show=["milk"])
    with pytest.raises(ub.InvalidRequestError, match="hide must be a list of item ids, not 'milk'"):
        shop.hide("milk")
    with pytest.raises(ub.InvalidIdError):
        shop.hide(["bread", ""])
    assert shop.hidden() == ["tea"]
