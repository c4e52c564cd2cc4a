"""The contract, method by method, on a shop that is small enough for pencil and paper.

With m = 2, both decays 1/2, alpha 1/2 and two neighbors:

    ann  {milk, bread}, {milk}   milk (1/2 + 1)/2 = 3/4, bread (1/2)/2 = 1/4
    bob  {milk, tea}             milk 1, tea 1
    cat  {tea}                   tea 1
"""

import random
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

import unbasket as ub
from unbasket import Basket, BasketShare, Explanation, Forgotten, Learned, Verification
from unbasket.core.arrays import Int64s
from unbasket.core.check import testing
from unbasket.core.index.index import MAX_BASKET, Index
from unbasket.core.memory.jagged import JaggedArray
from unbasket.core.model import queries
from unbasket.core.model.history import Histories
from unbasket.domain.ids import FREE
from unbasket.params import Grouping

Change = Callable[[ub.Recommender], object]

GROUPINGS: list[Grouping] = ["fixed", "varying"]
MILK, BREAD, TEA = 0.625, 0.125, 0.5  # ann's scores


def params(grouping: Grouping = "fixed", neighbors: int = 2) -> ub.Params:
    return ub.Params(group_size=2, basket_decay=0.5, group_decay=0.5, neighbors=neighbors, alpha=0.5, grouping=grouping)


@pytest.fixture
def shop() -> ub.Recommender:
    rec = ub.Recommender(params())
    rec.learn("ann", ["milk", "bread"], basket=1, time=10)
    rec.learn("ann", ["milk"], basket=2, time=20)
    rec.learn("bob", ["milk", "tea"], basket=1)
    rec.learn("cat", ["tea"], basket="first")
    return rec


def state(rec: ub.Recommender) -> tuple[object, ...]:
    """All that can be seen of a recommender."""
    users = rec.users()
    return (
        rec.digest(),
        [rec.history(user) for user in users],
        [rec.groups(user) for user in users],
        [rec.vector(user) for user in users],
        rec.recommend_many(),
        rec.popular(1000),
        rec.items(),
    )


# Learning -------------------------------------------------------------------------------------------------------


def test_learning_adds(shop: ub.Recommender) -> None:
    assert shop.learn("ann", ["tea"], basket=3, time=30) is Learned.ADDED
    assert shop.history("ann")[2] == Basket(3, 30, ("tea",))
    assert shop.vector("ann") == {"bread": 0.0625, "milk": 0.1875, "tea": 0.5}
    assert shop.learn("dan", ["salt"], basket="x") is Learned.ADDED
    assert shop.users() == ["ann", "bob", "cat", "dan"]


def test_learning_the_same_again_changes_nothing(shop: ub.Recommender) -> None:
    before = state(shop)
    assert shop.learn("ann", ["bread", "milk", "bread"], basket=1) is Learned.UNCHANGED
    assert shop.learn("ann", ["bread", "milk"], basket=1, time=10) is Learned.UNCHANGED
    assert shop.learn("cat", ["tea"], basket="first") is Learned.UNCHANGED
    assert state(shop) == before


def test_learning_other_items_replaces_them(shop: ub.Recommender) -> None:
    assert shop.learn("ann", ["milk", "salt"], basket=1) is Learned.REPLACED
    assert shop.history("ann") == [Basket(1, 10, ("milk", "salt")), Basket(2, 20, ("milk",))]
    assert shop.vector("ann") == {"milk": 0.75, "salt": 0.25}
    assert shop.items() == ["milk", "salt", "tea"]


def test_learning_another_time_moves_the_basket(shop: ub.Recommender) -> None:
    assert shop.learn("ann", ["milk", "bread"], basket=1, time=25) is Learned.REPLACED
    assert shop.history("ann") == [Basket(2, 20, ("milk",)), Basket(1, 25, ("bread", "milk"))]
    assert shop.vector("ann") == {"bread": 0.5, "milk": 0.75}
    assert shop.verify().ok


def test_moving_the_only_basket_of_a_user(shop: ub.Recommender) -> None:
    assert shop.learn("cat", ["tea"], basket="first", time=7) is Learned.REPLACED
    assert shop.history("cat") == [Basket("first", 7, ("tea",))]
    assert shop.learn("cat", ["salt"], basket="first", time=8) is Learned.REPLACED
    assert shop.history("cat") == [Basket("first", 8, ("salt",))]
    assert len(shop) == 3
    assert shop.verify().ok


def test_late_baskets_are_inserted_by_time_and_id(shop: ub.Recommender) -> None:
    late: list[tuple[Any, int]] = [(0, 20), (5, 20), ("b", 20), ("a", 20), (9, 5), (-1, 10)]
    for basket, time in late:
        assert shop.learn("ann", ["salt"], basket=basket, time=time) is Learned.ADDED
    expected = [(5, 9), (10, -1), (10, 1), (20, 0), (20, 2), (20, 5), (20, "a"), (20, "b")]
    assert [(basket.time, basket.basket) for basket in shop.history("ann")] == expected


def test_baskets_without_a_time_come_after_all_that_are_there(shop: ub.Recommender) -> None:
    shop.learn("ann", ["salt"], basket=7)
    shop.learn("ann", ["salt"], basket=3)
    shop.learn("ann", ["salt"], basket=8, time=15)
    shop.learn("ann", ["salt"], basket=9, time=30)
    assert [basket.basket for basket in shop.history("ann")] == [1, 8, 2, 7, 3, 9]


def test_an_int_and_a_text_are_different_ids() -> None:
    rec = ub.Recommender(params())
    rec.learn(1, [1, "1"], basket=1)
    rec.learn(1, [1], basket="1")
    rec.learn("1", ["1"], basket=1)
    assert rec.users() == [1, "1"]
    assert rec.items() == [1, "1"]
    assert rec.history(1) == [Basket(1, None, (1, "1")), Basket("1", None, (1,))]
    assert rec.forget(1, basket="1") == Forgotten(1, 1, 0)


def test_numpy_ids_and_times_are_plain_ones() -> None:
    plain, numpy = ub.Recommender(params()), ub.Recommender(params())
    plain.learn(1, [2, "a"], basket="b", time=5)
    one: Any = np.int32(1)
    two: Any = np.int64(2)
    five: Any = np.int16(5)
    numpy.learn(one, [two, np.str_("a")], basket=np.str_("b"), time=five)
    assert numpy.digest() == plain.digest()
    assert type(numpy.history(1)[0].time) is int
    assert [type(item) for item in numpy.items()] == [int, str]


def test_items_may_come_from_any_iterable() -> None:
    rec = ub.Recommender(params())
    rec.learn("u", (item for item in ("b", "a", "b")), basket=1)
    rec.learn("u", {"a": 1}, basket=2)
    assert rec.history("u") == [Basket(1, None, ("a", "b")), Basket(2, None, ("a",))]


def test_the_largest_basket() -> None:
    rec = ub.Recommender(params())
    assert rec.learn("u", range(MAX_BASKET), basket=1) is Learned.ADDED
    assert len(rec.recommend("u", n=10_000)) == MAX_BASKET


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_history_that_was_long_and_no_longer_is(grouping: Grouping, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long histories have an index of their basket ids; it must know every basket, also of one that got shorter."""
    monkeypatch.setattr("unbasket.engine.histories.LONG", 4)
    rec = ub.Recommender(params(grouping))
    for basket in range(6):
        rec.learn("u", ["milk"], basket=basket)
    for basket in range(4):
        rec.forget("u", basket=basket)
    assert rec.learn("u", ["milk"], basket="new") is Learned.ADDED
    assert rec.learn("u", ["milk"], basket="new") is Learned.UNCHANGED
    assert [basket.basket for basket in rec.history("u")] == [4, 5, "new"]


def test_long_histories_know_their_baskets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.histories.LONG", 4)
    rec, plain = ub.Recommender(params()), random.Random(0)
    expected: dict[int, tuple[str, ...]] = {}
    for _ in range(400):
        basket, item = plain.randrange(12), plain.choice("abc")
        if plain.random() < 0.55:
            assert rec.learn("u", [item], basket=basket) == (
                Learned.ADDED
                if basket not in expected
                else Learned.UNCHANGED
                if expected[basket] == (item,)
                else Learned.REPLACED
            )
            expected[basket] = (item,)
        else:
            assert bool(rec.forget("u", basket=basket)) == (basket in expected)
            expected.pop(basket, None)
        history = rec.history("u") if "u" in rec else []
        assert {entry.basket: entry.items for entry in history} == expected
        assert len(history) == len(expected)


# Forgetting -----------------------------------------------------------------------------------------------------


def test_forgetting_a_user(shop: ub.Recommender) -> None:
    assert shop.forget("ann") == Forgotten(purchases=3, baskets=2, users=1)
    assert "ann" not in shop
    assert shop.items() == ["milk", "tea"]
    assert shop.recommend("cat") == [("tea", 1.0), ("milk", 0.5)]


def test_forgetting_a_basket(shop: ub.Recommender) -> None:
    assert shop.forget("ann", basket=1) == Forgotten(purchases=2, baskets=1, users=0)
    assert shop.history("ann") == [Basket(2, 20, ("milk",))]
    assert shop.vector("ann") == {"milk": 1.0}
    assert shop.forget("cat", basket="first") == Forgotten(purchases=1, baskets=1, users=1)
    assert shop.users() == ["ann", "bob"]


def test_forgetting_an_item_of_a_basket(shop: ub.Recommender) -> None:
    assert shop.forget("ann", basket=1, item="bread") == Forgotten(purchases=1, baskets=0, users=0)
    assert shop.vector("ann") == {"milk": 0.75}
    assert "bread" not in shop.items()
    assert shop.forget("ann", basket=2, item="milk") == Forgotten(purchases=1, baskets=1, users=0)
    assert shop.history("ann") == [Basket(1, 10, ("milk",))]
    assert shop.forget("ann", basket=1, item="milk") == Forgotten(purchases=1, baskets=1, users=1)
    assert "ann" not in shop


def test_forgetting_an_item_of_all_baskets(shop: ub.Recommender) -> None:
    assert shop.forget("ann", item="milk") == Forgotten(purchases=2, baskets=1, users=0)
    assert shop.history("ann") == [Basket(1, 10, ("bread",))]
    assert shop.popular() == [("tea", 2), ("bread", 1), ("milk", 1)]
    assert shop.forget("cat", item="tea") == Forgotten(purchases=1, baskets=1, users=1)
    assert shop.verify().ok


NOTHING: list[dict[str, Any]] = [
    {"user": "nobody"},
    {"user": "nobody", "basket": 1},
    {"user": "ann", "basket": 3},
    {"user": "ann", "basket": "1"},
    {"user": "ann", "basket": "first"},
    {"user": "ann", "basket": 2, "item": "bread"},
    {"user": "ann", "basket": 1, "item": "salt"},
    {"user": "ann", "item": "tea"},
    {"user": "ann", "item": "salt"},
    {"user": "ann", "basket": 3, "item": "milk"},
]


@pytest.mark.parametrize("what", NOTHING, ids=str)
def test_forgetting_what_is_not_there_says_so(shop: ub.Recommender, what: dict[str, Any]) -> None:
    before = state(shop)
    forgotten = shop.forget(**what)
    assert forgotten == Forgotten(0, 0, 0)
    assert not forgotten
    assert state(shop) == before


def test_what_was_forgotten_is_true_in_a_condition(shop: ub.Recommender) -> None:
    assert shop.forget("ann", basket=2)


def test_nothing_of_the_forgotten_is_left_in_the_lists_of_ids(shop: ub.Recommender) -> None:
    shop.digest()
    shop.digest()
    for user in shop.users():
        shop.forget(user)
    assert not shop._model.digest._hashes.any()  # at once: a hash confirms a guess
    memory = shop._state
    names = [*memory.users.names, *memory.items.names, *memory.texts.names]
    assert set(names) == {FREE}
    assert shop.digest() == ub.Recommender(params()).digest()
    assert (shop.users(), shop.items(), len(shop), shop.popular()) == ([], [], 0, [])


def test_a_forgotten_user_may_come_back(shop: ub.Recommender) -> None:
    before = shop.digest()
    shop.forget("bob")
    assert shop.digest() != before
    shop.learn("bob", ["tea", "milk"], basket=1)
    assert shop.digest() == before


def test_varying_groups_keep_their_boundaries() -> None:
    rec = ub.Recommender(params("varying"))
    for basket in range(1, 6):
        rec.learn("u", ["x"], basket=basket)
    assert rec.groups("u") == [2, 2, 1]
    rec.forget("u", basket=3)
    assert rec.groups("u") == [2, 1, 1]
    rec.forget("u", basket=1)
    assert rec.groups("u") == [1, 1, 1]
    rec.learn("u", ["x"], basket=6)
    assert rec.groups("u") == [1, 1, 2]
    rec.forget("u", basket=4)
    assert rec.groups("u") == [1, 2]


def test_fixed_groups_are_regrouped(shop: ub.Recommender) -> None:
    for basket in range(3, 6):
        shop.learn("ann", ["x"], basket=basket)
    assert shop.groups("ann") == [2, 2, 1]
    shop.forget("ann", basket=1)
    assert shop.groups("ann") == [2, 2]


# Recommending ---------------------------------------------------------------------------------------------------


def test_recommendations_by_hand(shop: ub.Recommender) -> None:
    assert shop.recommend("ann") == [("milk", MILK), ("tea", TEA), ("bread", BREAD)]
    assert shop.recommend("bob") == [("tea", 0.75), ("milk", 0.6875), ("bread", 0.0625)]
    assert shop.recommend("cat") == [("tea", 0.75), ("milk", 0.4375), ("bread", 0.0625)]
    assert shop.recommend("ann", 1)[0].item == "milk"
    assert shop.recommend("ann", 1)[0].score == MILK


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 10**30])
def test_n_items_or_all_that_there_are(shop: ub.Recommender, n: int) -> None:
    assert [item for item, _ in shop.recommend("ann", n)] == ["milk", "tea", "bread"][:n]
    assert shop.recommend_many(["ann"], n) == {"ann": shop.recommend("ann", n)}
    assert shop.recommend_for([["milk", "bread"], ["milk"]], n, user="ann") == shop.recommend("ann", n)
    assert [item for item, _ in shop.popular(n)] == ["milk", "tea", "bread"][:n]
    assert [user for user, _ in shop.similar_users("ann", n)] == ["bob", "cat"][:n]


def test_n_may_be_a_numpy_number(shop: ub.Recommender) -> None:
    assert len(shop.recommend("ann", np.int8(2))) == 2  # type: ignore[arg-type]


def test_every_user_is_found_however_large_n_is() -> None:
    rec = ub.Recommender(params())
    for user in range(5):
        rec.learn(user, range(10 * user, 11 * user + 1), basket=1)
    for n in (4, 2**62, 2**63 - 1, 2**63, 10**30):
        assert len(rec.similar_users(0, n)) == 4


def test_excluded_items_are_left_out_before_the_cut(shop: ub.Recommender) -> None:
    assert shop.recommend("ann", 2, exclude=["milk"]) == [("tea", TEA), ("bread", BREAD)]
    assert shop.recommend("ann", 1, exclude={"milk", "tea", "never seen"}) == [("bread", BREAD)]
    assert shop.recommend("ann", exclude=["milk", "tea", "bread"]) == []
    assert shop.recommend("ann", exclude=[]) == shop.recommend("ann")


def test_only_new_items(shop: ub.Recommender) -> None:
    assert shop.recommend("ann", 2, only_new=True) == [("tea", TEA)]
    assert shop.recommend("cat", 1, only_new=True) == [("milk", 0.4375)]
    assert shop.recommend("cat", 5, only_new=True, exclude=["milk"]) == [("bread", 0.0625)]


def test_only_new_items_are_new_even_if_their_weight_is_rounded_away() -> None:
    rec = ub.Recommender(ub.Params(group_size=1, group_decay=0.001, neighbors=1))
    rec.learn("u", ["old"], basket=0)
    for basket in range(1, 10):
        rec.learn("u", ["new"], basket=basket)
    rec.learn("v", ["old", "other"], basket=0)
    assert [item for item, _ in rec.recommend("u", only_new=True)] == ["other"]


CATEGORIES = pl.DataFrame(
    {"item": ["milk", "tea", "bread", "gin"], "name": "a name", "category": ["cold", "hot", "dry", "cold"]}
)


def test_only_these_items(shop: ub.Recommender) -> None:
    assert shop.recommend("ann", 1, only=["tea", "bread"]) == [("tea", TEA)]
    assert shop.recommend("ann", only={"bread", "never seen"}) == [("bread", BREAD)]
    assert shop.recommend("ann", only=["milk", "milk", "tea"], exclude=["milk"]) == [("tea", TEA)]
    assert shop.recommend("ann", only=["milk", "tea"], only_new=True) == [("tea", TEA)]
    assert shop.recommend("ann", only=[]) == []
    assert shop.recommend("ann", only=["never seen"]) == []
    assert shop.recommend("ann", only=shop.items()) == shop.recommend("ann")


def test_a_frozen_set_follows_every_change(shop: ub.Recommender) -> None:
    """Its codes are kept, and change with the items."""
    stock = frozenset(["tea", "gin"])
    assert shop.recommend("ann", only=stock) == shop.recommend("ann", only=stock, exclude=["x"]) == [("tea", TEA)]
    shop.learn("bob", ["gin"], basket=2)
    assert [item for item, _ in shop.recommend("ann", only=stock)] == ["tea", "gin"]
    shop.forget("bob")
    shop.learn("dan", ["ham"], basket=1)  # it may get the code of gin
    assert [item for item, _ in shop.recommend("ann", only=stock)] == ["tea"]
    for number in range(300):  # more than are kept
        assert shop.recommend("ann", only=frozenset(["milk", number])) == shop.recommend("ann", only=["milk"])


def test_only_items_of_categories(shop: ub.Recommender) -> None:
    shop.describe(CATEGORIES)
    assert shop.recommend("ann", category="cold") == [("milk", MILK)]
    assert shop.recommend("ann", 1, category=["dry", "hot", "dry"]) == [("tea", TEA)]
    assert shop.recommend("ann", category={"dry", "hot"}) == [("tea", TEA), ("bread", BREAD)]
    assert shop.recommend("ann", category=["cold", "hot"], only=["bread", "tea"]) == [("tea", TEA)]
    assert shop.recommend("ann", category="unheard of") == shop.recommend("ann", category=[]) == []
    assert shop.recommend("ann", category="cold", only_new=True) == []


def test_categories_follow_every_change(shop: ub.Recommender) -> None:
    """The codes of a category are kept; they change with items, which come and go, and with the catalog."""
    shop.describe(CATEGORIES)

    def cold() -> list[object]:
        return [item for item, _ in shop.recommend("ann", category="cold")]

    assert cold() == ["milk"]
    shop.learn("bob", ["gin"], basket=2)
    assert cold() == ["milk", "gin"]
    shop.recommend_for([["new here"]])  # which has a code for the answer only
    shop.forget("bob")
    assert cold() == ["milk"]
    shop.learn("dan", ["ham"], basket=1)  # it may get the code of gin
    assert cold() == ["milk"]
    shop.describe({"item": ["ham", "milk"], "name": "a name", "category": ["cold", "dry"]})
    assert cold() == ["ham"]
    shop.fit(pl.DataFrame({"user": ["eve"], "basket": [1], "item": ["gin"]}))
    assert cold() == ["ham"]  # what was known of gin is forgotten


def test_many_answers_are_filtered_as_one_by_one(shop: ub.Recommender) -> None:
    shop.describe(CATEGORIES)
    filters: list[dict[str, Any]] = [
        {"exclude": ["milk"]},
        {"only_new": True},
        {"only": ["tea", "bread"]},
        {"category": ["hot", "dry"], "only_new": True, "exclude": ["bread"]},
    ]
    for each in filters:
        expected = {user: shop.recommend(user, 2, **each) for user in shop.users()}
        assert shop.recommend_many(n=2, **each) == expected
        rows = [(user, item) for user, answer in expected.items() for item, _ in answer]
        assert shop.recommend_frame(n=2, **each).select("user", "item").rows() == rows
        history = [["milk", "bread"], ["milk"]]
        assert shop.recommend_for(history, 2, user="ann", **each) == expected["ann"]


def test_a_cart_is_the_newest_basket_and_not_recommended(shop: ub.Recommender) -> None:
    """With {tea} as a third basket, ann has milk 3/16, bread 1/16, tea 1/2; both others are her neighbors."""
    before = state(shop)
    assert shop.recommend("ann", cart=["tea"]) == [("milk", 0.34375), ("bread", 0.03125)]
    assert shop.recommend("ann", cart=["milk", "milk", "unheard of"], only_new=True) == [("tea", TEA)]
    assert shop.recommend("ann", cart=[]) == shop.recommend("ann")
    assert shop.recommend("somebody new", cart=["milk"]) == shop.recommend_for([["milk"]], exclude=["milk"])
    assert shop.recommend("somebody new", cart=["unheard of"]) == shop.recommend_for([["x"]], exclude=["x"])
    assert state(shop) == before


def test_a_cart_of_a_visitor(shop: ub.Recommender) -> None:
    expected = shop.recommend_for([["milk"], ["tea"]], exclude=["tea"])
    assert shop.recommend_for([["milk"]], cart=["tea"]) == expected
    assert shop.recommend_for([["milk"]], cart=["tea"], only_new=True) == expected[1:]
    assert shop.recommend_for([], cart=["tea"]) == shop.recommend("somebody new", cart=["tea"])
    assert "unheard of" not in dict(shop.recommend_for([["milk"]], cart=["unheard of"]))
    assert shop.recommend_for([["milk"], ["tea"]], cart=[]) == shop.recommend_for([["milk"], ["tea"]])


def test_equal_scores_are_in_the_order_of_ids() -> None:
    rec = ub.Recommender(params())
    rec.learn("u", ["b", 10, "a", 9, "B", -1], basket=1)
    assert [item for item, _ in rec.recommend("u", 6)] == [-1, 9, 10, "B", "a", "b"]
    assert [item for item, _ in rec.recommend("u", 3)] == [-1, 9, 10]
    assert [item for item, _ in rec.recommend("u", 4, exclude=[9])] == [-1, 10, "B", "a"]


def test_a_user_alone_has_no_neighbors() -> None:
    rec = ub.Recommender(params())
    rec.learn("u", ["a"], basket=1)
    assert rec.recommend("u") == [("a", 0.5)]
    assert rec.similar_users("u") == []
    assert rec.explain("u", "a") == Explanation("a", 0.5, (BasketShare(1, None, 0.5),), 0.0, 0, 0)


def test_recommending_to_many(shop: ub.Recommender) -> None:
    everyone = shop.recommend_many(n=2)
    assert list(everyone) == ["ann", "bob", "cat"]
    assert everyone == {user: shop.recommend(user, 2) for user in shop.users()}
    some = shop.recommend_many(iter(["cat", "ann"]))
    assert list(some) == ["cat", "ann"]
    assert some == {user: shop.recommend(user) for user in ("cat", "ann")}
    assert shop.recommend_many([]) == {}
    assert ub.Recommender(params()).recommend_many() == {}


def test_progress_is_told(shop: ub.Recommender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.recommending._CHUNK", 2)
    calls: list[tuple[int, int]] = []
    answers = shop.recommend_many(progress=lambda done, total: calls.append((done, total)))
    assert calls == [(2, 3), (3, 3)]
    assert answers == {user: shop.recommend(user) for user in shop.users()}


def test_recommending_to_nobody_in_particular(shop: ub.Recommender) -> None:
    """{milk}: bob is at distance 1, ann at sqrt(1/16 + 1/16), cat at sqrt(2)."""
    assert shop.recommend_for([["milk"]]) == [("milk", 0.9375), ("tea", 0.25), ("bread", 0.0625)]
    assert shop.recommend_for([["milk"]], 1, exclude=["milk"]) == [("tea", 0.25)]
    assert shop.recommend_for([("milk", "milk")]) == shop.recommend_for([["milk"]])


def test_items_that_nobody_has_are_recommended_too_and_leave_nothing_behind(shop: ub.Recommender) -> None:
    before = state(shop)
    answer = shop.recommend_for([["secret", "milk"], ["secret", 99]], n=10)
    assert {"secret", 99} < {item for item, _ in answer}
    assert answer[0] == ("secret", 0.375)
    assert shop.recommend_for([["secret"]], exclude=["secret"])
    assert all(item != "secret" for item, _ in shop.recommend_for([["secret"]], exclude=["secret"]))
    assert state(shop) == before
    assert "secret" not in shop._state.items.names
    assert 99 not in shop._state.items.names
    assert shop.verify().ok


def test_an_error_after_items_were_lent_leaves_nothing_behind(shop: ub.Recommender) -> None:
    before = state(shop)
    with pytest.raises(ub.InvalidIdError):
        shop.recommend_for([["secret"]], user=1.5)  # type: ignore[arg-type]
    assert state(shop) == before
    assert "secret" not in shop._state.items.names


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("seed", range(5))
def test_a_preview_is_what_will_be(grouping: Grouping, seed: int) -> None:
    chance = random.Random(seed)
    rec = ub.Recommender(params(grouping, neighbors=3))
    for user in range(12):
        for basket in range(chance.randint(1, 5)):
            rec.learn(user, chance.sample(range(20), chance.randint(1, 4)), basket=basket)
    for user in range(12):
        history: list[list[Any]] = [list(basket.items) for basket in rec.history(user)]
        assert rec.recommend_for(history, user=user) == rec.recommend(user)
        preview = rec.recommend_for([*history, [3, "only here"]], user=user)
        rec.learn(user, [3, "only here"], basket="more")
        assert rec.recommend(user) == preview
        rec.forget(user, basket="more")


def test_a_preview_of_a_removed_item(shop: ub.Recommender) -> None:
    preview = shop.recommend_for([["bread"]], user="ann")
    shop.forget("ann", item="milk")
    assert shop.recommend("ann") == preview


def test_a_preview_for_a_user_who_is_not_there_leaves_nobody_out(shop: ub.Recommender) -> None:
    assert shop.recommend_for([["milk"]], user="nobody") == shop.recommend_for([["milk"]])
    assert "nobody" not in shop


# Looking inside -------------------------------------------------------------------------------------------------


def test_popular_items_are_filtered_before_the_cut(shop: ub.Recommender) -> None:
    shop.describe(CATEGORIES)
    assert shop.popular(1, exclude=["milk"]) == [("tea", 2)]
    assert shop.popular(only=["bread", "tea", "gin"]) == [("tea", 2), ("bread", 1)]
    assert shop.popular(category=["dry", "cold"]) == [("milk", 3), ("bread", 1)]
    assert shop.popular(category="hot", exclude=["tea"]) == shop.popular(only=[]) == []


def test_popular_items_since_a_time(shop: ub.Recommender) -> None:
    """Bob's and cat's baskets have no time."""
    shop.learn("dan", ["tea", "milk"], basket=1, time=20)
    shop.learn("ann", ["salt"], basket=3)
    shop.learn("ann", ["gin"], basket=4, time=15)
    assert shop.popular(since=20) == [("milk", 2), ("tea", 1)]
    assert shop.popular(since=15) == [("milk", 2), ("gin", 1), ("tea", 1)]
    assert shop.popular(since=-(2**63) + 1) == [("milk", 3), ("bread", 1), ("gin", 1), ("tea", 1)]
    assert shop.popular(1, since=15, exclude=["milk"]) == [("gin", 1)]
    assert shop.popular(since=15, only=["tea", "bread"]) == [("tea", 1)]
    assert shop.popular(since=21) == []
    shop.forget("dan")
    assert shop.popular(since=20) == [("milk", 1)]


def test_popular_items_are_counted_though_items_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item loses its code to another one while users are being counted."""
    monkeypatch.setattr("unbasket.engine.popularity._COUNTED", 1)
    rec = ub.Recommender(params())
    rec.learn("first", ["rare"], basket=1, time=1)
    for user in range(40):
        rec.learn(user, ["common"], basket=1, time=1)
    count, steps = queries.add_popularity, []

    def count_and_change(histories: Histories, first: int, end: int, since: int, counts: Int64s) -> None:
        count(histories, first, end, since, counts)
        steps.append(end)
        if len(steps) == 2:  # as another thread could between two steps
            rec._state.forget("first", None, None)
            rec._state.learn(39, ["other"], 2, 1)

    monkeypatch.setattr("unbasket.core.model.queries.add_popularity", count_and_change)
    assert rec.popular(since=0) == [("common", 40), ("other", 1)]
    assert steps == [4, 8, 16, 32, 48]


def test_popular_items_are_counted_by_baskets(shop: ub.Recommender) -> None:
    assert shop.popular() == [("milk", 3), ("tea", 2), ("bread", 1)]
    shop.learn("dan", ["bread", 5], basket=1)
    assert shop.popular() == [("milk", 3), ("bread", 2), ("tea", 2), (5, 1)]
    assert shop.popular(2) == [("milk", 3), ("bread", 2)]
    assert shop.popular(1)[0].count == 3


def test_vectors_by_hand(shop: ub.Recommender) -> None:
    assert list(shop.vector("ann").items()) == [("bread", 0.25), ("milk", 0.75)]
    assert shop.vector("bob") == {"milk": 1.0, "tea": 1.0}
    shop.learn("cat", ["salt", 7], basket=2)
    assert list(shop.vector("cat").items()) == [(7, 0.5), ("salt", 0.5), ("tea", 0.25)]


def test_vectors_are_not_rounded() -> None:
    rec = ub.Recommender(ub.Params(group_size=3, basket_decay=0.9))
    for basket in range(3):
        rec.learn("u", ["a"], basket=basket)
    assert rec.vector("u")["a"] == pytest.approx((0.81 + 0.9 + 1) / 3, rel=1e-15)
    assert rec.vector("u")["a"] * 2**24 % 1 != 0


def test_similar_users_by_hand(shop: ub.Recommender) -> None:
    assert shop.similar_users("ann") == [("bob", sqrt(1.125)), ("cat", sqrt(1.625))]
    assert shop.similar_users("ann", 1) == [("bob", sqrt(1.125))]
    assert shop.similar_users("cat")[0].user == "bob"
    assert shop.similar_users("cat")[0].distance == 1.0


def test_equally_similar_users_are_in_the_order_of_ids() -> None:
    rec = ub.Recommender(params())
    users: list[Any] = ["b", 2, "a", 1, "me"]
    for user in users:
        rec.learn(user, ["x"], basket=1)
    assert rec.similar_users("me") == [(1, 0.0), (2, 0.0), ("a", 0.0), ("b", 0.0)]
    assert rec.similar_users("me", 3) == [(1, 0.0), (2, 0.0), ("a", 0.0)]


def test_explanations_by_hand(shop: ub.Recommender) -> None:
    own = (BasketShare(1, 10, 0.125), BasketShare(2, 20, 0.25))
    assert shop.explain("ann", "milk") == Explanation("milk", MILK, own, 0.25, 1, 2)
    assert shop.explain("ann", "tea") == Explanation("tea", TEA, (), 0.5, 2, 2)
    assert shop.explain("ann", "bread") == Explanation("bread", BREAD, (BasketShare(1, 10, 0.125),), 0.0, 0, 2)
    assert shop.explain("ann", "never seen") == Explanation("never seen", 0.0, (), 0.0, 0, 2)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_shares_sum_to_the_score(grouping: Grouping) -> None:
    chance = random.Random(1)
    rec = ub.Recommender(ub.Params(group_size=3, neighbors=4, grouping=grouping))
    for user in range(10):
        for basket in range(chance.randint(1, 12)):
            rec.learn(user, chance.sample(range(15), chance.randint(1, 5)), basket=basket)
        rec.forget(user, basket=1)
    for user in range(10):
        scores = dict(rec.recommend(user, 100))
        near = [dict(rec.vector(other)) for other, _ in rec.similar_users(user, 4)]
        together = rec.explain_many(user, [*rec.items(), "never seen"])
        assert together == [rec.explain(user, item) for item in [*rec.items(), "never seen"]]
        for item in rec.items():
            why = rec.explain(user, item)
            assert abs(sum(share for _, _, share in why.baskets) + why.neighbors_share - why.score) < 1e-12
            assert why.score == pytest.approx(scores.get(item, 0.0), abs=1e-12)
            holding = [basket.basket for basket in rec.history(user) if item in basket.items]
            assert [basket for basket, _, _ in why.baskets] == holding
            assert (why.neighbors_with_item, why.neighbors) == (sum(item in vector for vector in near), 4)


def test_shares_are_those_of_the_equations() -> None:
    """Groups {x} {x} | {x}; level of x: 1/2 * (1/2)/2, 1/2 * 1/2, 1; over K = 2, times alpha = 1/2."""
    rec = ub.Recommender(params())
    for basket in range(3):
        rec.learn("u", ["x"], basket=basket)
    assert [share for _, _, share in rec.explain("u", "x").baskets] == [0.03125, 0.0625, 0.25]


def test_histories(shop: ub.Recommender) -> None:
    assert shop.history("ann") == [Basket(1, 10, ("bread", "milk")), Basket(2, 20, ("milk",))]
    assert shop.history("bob") == [Basket(1, None, ("milk", "tea"))]
    assert shop.history("bob")[0].items == ("milk", "tea")


def test_users_items_and_membership(shop: ub.Recommender) -> None:
    shop.learn(3, [8, "aa"], basket=1)
    assert shop.users() == [3, "ann", "bob", "cat"]
    assert shop.items() == [8, "aa", "bread", "milk", "tea"]
    assert len(shop) == 4
    assert 3 in shop
    assert "ann" in shop
    assert "3" not in shop
    assert "dan" not in shop
    assert shop.params == params()


def test_the_defaults() -> None:
    assert ub.Recommender().params == ub.Params()


# Proving --------------------------------------------------------------------------------------------------------


def spoil_norm(index: Index, user: int) -> None:
    part, row = testing.where(index, user)
    testing.norms(part)[row] += 1


def spoil_first(pool: JaggedArray, row: int, record: np.dtype[Any]) -> None:
    """Change the weight of the first record of a row."""
    testing.row(pool, row, record)["weight"][0] += 1


def spoil_vector(index: Index, user: int) -> None:
    part, row = testing.where(index, user)
    spoil_first(part.vectors, row, testing.ENTRY)


def spoil_entry(index: Index, item: int) -> None:
    spoil_first(index.shards[0].postings, item, testing.POSTING)


def spoil_popularity(histories: Histories, item: int) -> None:
    testing.popularity(histories)[item] += 1


def test_an_intact_model_is_verified(shop: ub.Recommender) -> None:
    assert shop.verify() == Verification(ok=True, users=3, mismatches=())
    assert shop.verify("ann") == Verification(ok=True, users=1, mismatches=())
    assert ub.Recommender(params()).verify() == Verification(ok=True, users=0, mismatches=())


def test_a_wrong_norm_is_found(shop: ub.Recommender) -> None:
    spoil_norm(shop._state.index, shop._state.users.codes["ann"])
    wrong = Verification(False, 3, ("the norm of user 'ann'",))
    assert shop.verify() == wrong
    assert shop.verify("ann") == wrong._replace(users=1)
    assert shop.verify("bob").ok


def test_a_wrong_vector_is_found(shop: ub.Recommender) -> None:
    spoil_vector(shop._state.index, shop._state.users.codes["bob"])
    assert shop.verify() == Verification(False, 3, ("the vector of user 'bob'",))


def test_a_wrong_entry_under_an_item_is_found(shop: ub.Recommender) -> None:
    spoil_entry(shop._state.index, shop._state.items.codes["bread"])
    assert shop.verify() == Verification(False, 3, ("the postings of user 'ann'",))


def test_a_wrong_count_is_found(shop: ub.Recommender) -> None:
    spoil_popularity(shop._state.histories, shop._state.items.codes["tea"])
    assert shop.verify() == Verification(False, 3, ("the item counts",))


def test_an_item_that_nobody_has_is_found(shop: ub.Recommender) -> None:
    shop._state._item_codes(["ghost"])
    assert shop.verify() == Verification(False, 3, ("the ids",))


def test_a_report_stays_short() -> None:
    rec = ub.Recommender(params())
    for user in range(50):
        rec.learn(user, ["x"], basket=1)
        spoil_norm(rec._state.index, user)
    assert len(rec.verify().mismatches) == 20
    assert rec.verify().users == 50


CHANGES: dict[str, Change] = {
    "a new user": lambda rec: rec.learn("dan", ["milk"], basket=1),
    "a new basket": lambda rec: rec.learn("ann", ["milk"], basket=3, time=30),
    "a late basket": lambda rec: rec.learn("ann", ["milk"], basket=3, time=5),
    "an edit": lambda rec: rec.learn("ann", ["milk", "tea"], basket=2),
    "another time": lambda rec: rec.learn("ann", ["milk"], basket=2, time=21),
    "a first time": lambda rec: rec.learn("bob", ["milk", "tea"], basket=1, time=1),
    "a user less": lambda rec: rec.forget("ann"),
    "a basket less": lambda rec: rec.forget("ann", basket=1),
    "an item of a basket less": lambda rec: rec.forget("ann", basket=1, item="milk"),
    "an item less": lambda rec: rec.forget("ann", item="milk"),
    "a frame": lambda rec: rec.fit(pl.DataFrame({"user": ["ann"], "basket": [9], "item": ["tea"]})),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_every_change_changes_the_digest(shop: ub.Recommender, change: Change) -> None:
    before = shop.digest()
    change(shop)
    assert shop.digest() != before
    assert shop.verify().ok


def test_equal_data_in_another_order_have_the_same_digest(shop: ub.Recommender) -> None:
    other = ub.Recommender(params())
    other.learn("zoe", ["soap"], basket=1)
    other.learn("cat", ["tea"], basket="first")
    other.learn("ann", ["milk"], basket=2, time=20)
    other.forget("zoe")
    other.learn("bob", ["tea", "milk"], basket=1)
    assert other.digest() != shop.digest()
    other.learn("ann", ["bread", "milk"], basket=1, time=10)
    assert other.digest() == shop.digest()
    assert state(other) == state(shop)


def test_the_order_of_baskets_is_in_the_digest() -> None:
    forth, back = ub.Recommender(params()), ub.Recommender(params())
    for basket in (1, 2):
        forth.learn("u", ["a"], basket=basket)
        back.learn("u", ["a"], basket=3 - basket)
    assert forth.digest() != back.digest()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("u", ["a"], 1), ("v", ["a"], 1)),
        (("u", ["a"], 1), ("u", ["b"], 1)),
        (("u", ["a"], 1), ("u", ["a"], 2)),
        (("u", ["a"], 1), ("u", ["a"], "1")),
        (("u", ["1"], 1), ("u", [1], 1)),
        (("1", ["a"], 1), (1, ["a"], 1)),
        (("u", ["a", "b"], 1), ("u", ["ab"], 1)),
        (("u", ["i1;"], 1), ("u", [1], 1)),
    ],
    ids=str,
)
def test_different_data_have_different_digests(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> None:
    digests = set()
    for user, items, basket in (one, other):
        rec = ub.Recommender(params())
        rec.learn(user, items, basket=basket)
        digests.add(rec.digest())
    assert len(digests) == 2


def test_users_do_not_cancel_out_in_the_digest() -> None:
    """Two users with the same baskets are not nobody."""
    rec = ub.Recommender(params())
    seen = {rec.digest()}
    for user in range(4):
        rec.learn(user, ["a"], basket=1)
        seen.add(rec.digest())
    assert len(seen) == 5


def test_group_boundaries_are_in_the_digest() -> None:
    rows = pl.DataFrame({"user": [1, 1], "basket": [1, 2], "item": ["a", "a"], "one": [1, 1], "two": [1, 2]})
    together = ub.Recommender(params("varying")).fit(rows, group="one")
    apart = ub.Recommender(params("varying")).fit(rows, group="two")
    assert (together.groups(1), apart.groups(1)) == ([2], [1, 1])
    assert together.digest() != apart.digest()


@pytest.mark.parametrize(
    "other",
    [
        {"group_size": 3},
        {"basket_decay": 0.6},
        {"group_decay": 0.6},
        {"neighbors": 3},
        {"alpha": 0.6},
        {"grouping": "varying"},
    ],
    ids=str,
)
def test_parameters_are_in_the_digest(other: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"group_size": 2, "basket_decay": 0.5, "group_decay": 0.5, "neighbors": 2, "alpha": 0.5}
    assert ub.Recommender(ub.Params(**usual | other)).digest() != ub.Recommender(ub.Params(**usual)).digest()


def test_a_digest_is_64_hex_digits(shop: ub.Recommender) -> None:
    assert len(shop.digest()) == 64
    assert int(shop.digest(), 16) > 0


# Bad input ------------------------------------------------------------------------------------------------------

BAD: list[tuple[type[Exception], str, Callable[[Any], object]]] = [
    (ub.InvalidIdError, "1.5", lambda rec: rec.learn(1.5, ["a"], basket=1)),
    (ub.InvalidIdError, "None", lambda rec: rec.learn("u", ["a"], basket=None)),
    (ub.InvalidIdError, "True", lambda rec: rec.learn("u", ["a", True], basket=1)),
    (ub.InvalidIdError, "empty", lambda rec: rec.learn("u", ["a", ""], basket=1)),
    (ub.InvalidIdError, str(2**63), lambda rec: rec.learn("ann", [2**63], basket=1)),
    (ub.InvalidIdError, "udc00", lambda rec: rec.learn("ann", ["\udc00"], basket=1)),
    (ub.InvalidBasketError, "has 0 items", lambda rec: rec.learn("ann", [], basket=1)),
    (ub.InvalidBasketError, "8193 items", lambda rec: rec.learn("ann", range(MAX_BASKET + 1), basket=1)),
    (ub.InvalidBasketError, "'milk'", lambda rec: rec.learn("ann", "milk", basket=1)),
    (ub.InvalidBasketError, "None", lambda rec: rec.learn("ann", None, basket=1)),
    (ub.InvalidBasketError, "5", lambda rec: rec.learn("ann", 5, basket=1)),
    (ub.InvalidBasketError, "1.5", lambda rec: rec.learn("ann", ["a"], basket=1, time=1.5)),
    (ub.InvalidBasketError, "'now'", lambda rec: rec.learn("ann", ["a"], basket=1, time="now")),
    (ub.InvalidBasketError, "True", lambda rec: rec.learn("ann", ["a"], basket=1, time=True)),
    (ub.InvalidBasketError, str(2**63), lambda rec: rec.learn("ann", ["a"], basket=1, time=2**63)),
    (ub.InvalidBasketError, str(-(2**63)), lambda rec: rec.learn("ann", ["a"], basket=1, time=-(2**63))),
    (ub.InvalidIdError, "None", lambda rec: rec.forget(None)),
    (ub.InvalidIdError, "2.0", lambda rec: rec.forget("ann", basket=2.0)),
    (ub.InvalidIdError, "False", lambda rec: rec.forget("ann", item=False)),
    (ub.InvalidRequestError, "-1", lambda rec: rec.recommend("ann", -1)),
    (ub.InvalidRequestError, "2.0", lambda rec: rec.recommend("ann", 2.0)),
    (ub.InvalidRequestError, "True", lambda rec: rec.recommend("ann", True)),
    (ub.InvalidRequestError, "None", lambda rec: rec.recommend_many(n=None)),
    (ub.InvalidRequestError, "-2", lambda rec: rec.recommend_for([["milk"]], -2)),
    (ub.InvalidRequestError, "'3'", lambda rec: rec.popular("3")),
    (ub.InvalidRequestError, "-4", lambda rec: rec.similar_users("ann", -4)),
    (ub.InvalidBasketError, "'today'", lambda rec: rec.popular(since="today")),
    (ub.UnknownUserError, "'dan'", lambda rec: rec.recommend("dan")),
    (ub.UnknownUserError, "'dan'", lambda rec: rec.recommend_many(["ann", "dan"])),
    (ub.UnknownUserError, "'dan'", lambda rec: rec.vector("dan")),
    (ub.UnknownUserError, "'dan'", lambda rec: rec.similar_users("dan")),
    (ub.UnknownUserError, "'dan'", lambda rec: rec.explain("dan", "milk")),
    (ub.UnknownUserError, "'dan'", lambda rec: rec.history("dan")),
    (ub.UnknownUserError, "'dan'", lambda rec: rec.groups("dan")),
    (ub.InvalidIdError, "1.0", lambda rec: rec.recommend(1.0)),
    (ub.InvalidIdError, "[]", lambda rec: rec.history([])),
    (ub.InvalidIdError, "None", lambda rec: rec.explain("ann", None)),
    (ub.InvalidIdError, "2.5", lambda rec: rec.verify(2.5)),
    (ub.UnbasketError, "[1]", lambda rec: rec.recommend("ann", exclude=[[1]])),
    (ub.UnbasketError, "'milk'", lambda rec: rec.recommend("ann", exclude="milk")),
    (ub.InvalidRequestError, "only must be a list", lambda rec: rec.recommend("ann", only="milk")),
    (ub.InvalidIdError, "2.5", lambda rec: rec.recommend_many(only=[2.5])),
    (ub.InvalidIdError, "True", lambda rec: rec.recommend_many(only=frozenset([True]))),
    (ub.InvalidRequestError, "5", lambda rec: rec.recommend("ann", category=5)),
    (ub.InvalidRequestError, "[5]", lambda rec: rec.popular(category=[5])),
    (ub.InvalidBasketError, "'milk'", lambda rec: rec.recommend("ann", cart="milk")),
    (ub.InvalidBasketError, "8193", lambda rec: rec.recommend("ann", cart=range(MAX_BASKET + 1))),
    (ub.InvalidIdError, "1.5", lambda rec: rec.recommend(1.5, cart=["milk"])),
    (ub.InvalidBasketError, "None", lambda rec: rec.recommend_for(None, cart=["milk"])),
    (ub.InvalidBasketError, "history", lambda rec: rec.recommend_for([])),
    (ub.InvalidBasketError, "0 items", lambda rec: rec.recommend_for([["milk"], []])),
    (ub.InvalidBasketError, "8192", lambda rec: rec.recommend_for([range(MAX_BASKET + 1)])),
    (ub.InvalidBasketError, "'milk'", lambda rec: rec.recommend_for(["milk"])),
    (ub.InvalidBasketError, "7", lambda rec: rec.recommend_for([7])),
    (ub.InvalidBasketError, "None", lambda rec: rec.recommend_for(None)),
    (ub.InvalidIdError, "None", lambda rec: rec.recommend_for([["milk", None]])),
    (ub.InvalidIdError, "1.5", lambda rec: rec.recommend_for([["milk"]], user=1.5)),
    (ub.InvalidFrameError, "list", lambda rec: rec.fit([])),
]


@pytest.mark.parametrize(("error", "value", "call"), BAD)
def test_bad_input_is_an_error_with_its_value_and_changes_nothing(
    shop: ub.Recommender, error: type[Exception], value: str, call: Callable[[Any], object]
) -> None:
    before = state(shop)
    with pytest.raises(error) as caught:
        call(shop)
    assert isinstance(caught.value, ub.UnbasketError)
    assert value in str(caught.value)
    assert state(shop) == before
    assert shop.verify().ok


def test_errors_are_also_the_usual_python_ones() -> None:
    assert issubclass(ub.UnknownUserError, LookupError)
    for error in (ub.InvalidIdError, ub.InvalidBasketError, ub.InvalidFrameError, ub.InvalidRequestError):
        assert issubclass(error, ValueError)


def test_sizes() -> None:
    rec = ub.Recommender(ub.Params())
    assert rec.sizes() == (0, 0, 0, 0, 0)
    rec.learn("ann", ["milk", "tea"], basket=1)
    rec.learn("ann", ["milk"], basket=2)
    rec.learn("bob", ["wine"], basket=1)
    assert rec.sizes() == ub.Sizes(users=2, items=3, baskets=3, purchases=4, entries=3)
    rec.forget("ann", item="tea")
    assert rec.sizes() == ub.Sizes(users=2, items=2, baskets=3, purchases=3, entries=2)


@pytest.mark.parametrize(
    "change",
    [
        lambda rec: rec.forget("ann"),
        lambda rec: rec.forget("ann", item="tea"),
        lambda rec: rec.learn("ann", ["milk"], basket=1),
    ],
    ids=["user", "item", "edit"],
)
def test_the_hash_of_what_is_gone_goes_at_once(change: Callable[[ub.Recommender], object]) -> None:
    rec = ub.Recommender(ub.Params())
    rec.learn("ann", ["milk", "tea"], basket=1)
    rec.digest()
    hashes = rec._model.digest._hashes
    assert hashes.any()
    change(rec)
    assert not hashes.any()


def test_a_text_that_was_learned_twice_goes_with_its_basket() -> None:
    rec = ub.Recommender(ub.Params())
    for items in (["milk"], ["milk"], ["tea"]):
        rec.learn("ann", items, basket="first")
    rec.forget("ann")
    assert not rec.has_texts("basket")
