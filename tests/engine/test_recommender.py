"""The contract of the recommender, method by method, on the small shop."""

import random
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.small_shop import GROUPINGS, params, state

import unbasket as ub
from unbasket import Basket, Forgotten, Learned, Verification
from unbasket.core.check import testing
from unbasket.core.index import MAX_BASKET, Index
from unbasket.core.memory import JaggedArray
from unbasket.core.model import Histories
from unbasket.domain.events import Learn
from unbasket.domain.ids import FREE
from unbasket.params import Grouping

Change = Callable[[ub.Recommender], object]


# Learning -------------------------------------------------------------------------------------------------------


def test_learning_adds(shop: ub.Recommender) -> None:
    assert shop.learn("ann", ["tea"], basket=3, time=30) is Learned.ADDED
    assert shop.history("ann")[2] == Basket(3, 30, ("tea",))
    assert shop.vector("ann") == {"bread": 0.0625, "milk": 0.1875, "tea": 0.5}
    assert shop.learn("dan", ["salt"], basket=9) is Learned.ADDED
    assert shop.users() == ["ann", "bob", "cat", "dan"]


def test_learning_the_same_again_changes_nothing(shop: ub.Recommender) -> None:
    before = state(shop)
    assert shop.learn("ann", ["bread", "milk", "bread"], basket=1) is Learned.UNCHANGED
    assert shop.learn("ann", ["bread", "milk"], basket=1, time=10) is Learned.UNCHANGED
    assert shop.learn("cat", ["tea"], basket=7) is Learned.UNCHANGED
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
    assert shop.learn("cat", ["tea"], basket=7, time=7) is Learned.REPLACED
    assert shop.history("cat") == [Basket(7, 7, ("tea",))]
    assert shop.learn("cat", ["salt"], basket=7, time=8) is Learned.REPLACED
    assert shop.history("cat") == [Basket(7, 8, ("salt",))]
    assert len(shop) == 3
    assert shop.verify().ok


def test_late_baskets_are_inserted_by_time_and_id(shop: ub.Recommender) -> None:
    for basket, time in [(0, 20), (5, 20), (11, 20), (10, 20), (9, 5), (-1, 10)]:
        assert shop.learn("ann", ["salt"], basket=basket, time=time) is Learned.ADDED
    expected = [(5, 9), (10, -1), (10, 1), (20, 0), (20, 2), (20, 5), (20, 10), (20, 11)]
    assert [(basket.time, basket.basket) for basket in shop.history("ann")] == expected


def test_baskets_without_a_time_follow_all_existing_ones(shop: ub.Recommender) -> None:
    shop.learn("ann", ["salt"], basket=7)
    shop.learn("ann", ["salt"], basket=3)
    shop.learn("ann", ["salt"], basket=8, time=15)
    shop.learn("ann", ["salt"], basket=9, time=30)
    assert [basket.basket for basket in shop.history("ann")] == [1, 8, 2, 7, 3, 9]


def test_a_number_and_its_text_are_one_id() -> None:
    rec = ub.Recommender(params())
    assert rec.learn(1, [1, "1", 2], basket="1") is Learned.ADDED
    assert rec.learn("1", ["2", "1"], basket=1) is Learned.UNCHANGED
    assert rec.users() == [1]
    assert rec.items() == ["1", "2"]
    assert rec.history("1") == [Basket("1", None, ("1", "2"))]
    assert rec.forget("1", basket=1, item=2) == Forgotten(1, 0, 0)
    assert rec.forget(1) == Forgotten(1, 1, 1)
    assert rec.id_types() == {"user": None, "basket": None, "item": None}


@pytest.mark.parametrize("spelling", ["A-5", "017", " 17", "17 ", "+17", "17.0", "-0", "١٧", str(2**63)])
def test_a_text_that_spells_no_number_is_refused_among_numbers(spelling: str) -> None:
    rec = ub.Recommender(params())
    rec.learn(17, [17], basket=17)
    before = state(rec)
    calls: list[Callable[[], object]] = [
        lambda: rec.learn(spelling, [17], basket=1),
        lambda: rec.learn(17, [17, spelling], basket=1),
        lambda: rec.learn(17, [17], basket=spelling),
        lambda: rec.apply([Learn(18, [1], 1, None), Learn(spelling, [1], 1, None)]),
        lambda: rec.fit(pl.DataFrame({"user": ["18", spelling], "basket": 1, "item": 1})),
        lambda: rec.forget(spelling),
        lambda: rec.forget(17, basket=spelling),
        lambda: rec.forget(17, item=spelling),
        lambda: rec.rename(17, spelling),
        lambda: rec.suppress(17, spelling),
        lambda: rec.allow(17, spelling),
        lambda: rec.hide([spelling]),
        lambda: rec.show([spelling]),
        lambda: rec.describe(pl.DataFrame({"item": [spelling], "name": "a", "category": "b"})),
        lambda: rec.recommend(spelling),
        lambda: rec.recommend(17, exclude=[spelling]),
        lambda: rec.recommend(17, only=frozenset([spelling])),
        lambda: rec.recommend(17, cart=[spelling]),
        lambda: rec.recommend_for([[spelling]]),
        lambda: rec.recommend_many([17, spelling]),
        lambda: rec.explain(17, spelling),
        lambda: rec.history(spelling),
        lambda: rec.verify(spelling),
    ]
    for call in calls:
        with pytest.raises(ub.InvalidIdError, match=r"not written as a whole number such as 17.* ids to-text --kind"):
            call()
    assert spelling not in rec
    assert state(rec) == before
    assert rec.verify().ok


@pytest.mark.parametrize("kinds", [["user"], ["basket"], ["item"], ["user", "basket", "item"]])
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_numbers_become_texts(grouping: Grouping, kinds: list[str]) -> None:
    """The engine equals one that learned the same baskets, oldest first, under the new ids."""
    chance = random.Random(7)
    rec = ub.Recommender(params(grouping))
    for basket in chance.sample(range(200), 60):
        time = chance.choice([None, chance.randrange(3)])
        rec.learn(chance.randrange(8), chance.sample(range(30), 3), basket=basket, time=time)
    rec.suppress(3, 7)
    rec.hide([5, 1000])
    rec.describe(pl.DataFrame({"item": [1, 2], "name": ["one", "two"], "category": "c"}))
    before = {user: rec.history(user) for user in rec.users()}
    rec.change_ids(**dict.fromkeys(kinds, "text"))  # type: ignore[arg-type]
    assert {kind for kind, held in rec.id_types().items() if held == "text"} == set(kinds)
    fresh = ub.Recommender(params(grouping))
    for user, history in before.items():
        for name, moment, items in history:
            ids = {"user": user, "basket": name}
            user_id, basket_id = (str(ids[kind]) if kind in kinds else ids[kind] for kind in ("user", "basket"))
            fresh.learn(user_id, map(str, items) if "item" in kinds else items, basket=basket_id, time=moment)
    fresh.suppress(3, 7)
    fresh.hide([5, 1000])
    for user in before:
        assert sorted(rec.history(user)) == sorted(fresh.history(user))
        assert [basket.time for basket in rec.history(user)] == [basket.time for basket in before[user]]
    assert rec.hidden() == fresh.hidden()
    assert rec.catalog[1].name == rec.catalog["1"].name == "one"
    assert rec.verify() == (True, len(before), ())
    again = ub.Recommender(params(grouping))
    for user in rec.users():
        for name, moment, items in rec.history(user):
            again.learn(user, items, basket=name, time=moment)
    if grouping == "fixed":
        again.suppress(3, 7)
        assert rec.digest() == again.digest()
    assert rec.learn("A-5" if "user" in kinds else 9, [1], basket=1000) is Learned.ADDED


def test_ids_become_nothing_but_texts() -> None:
    with pytest.raises(ub.InvalidRequestError, match='ids can become texts only, by item="text"'):
        ub.Recommender().change_ids(item="number")  # type: ignore[arg-type]


def test_numpy_ids_and_times_are_plain_ones() -> None:
    plain, numpy = ub.Recommender(params()), ub.Recommender(params())
    plain.learn(1, [2, 3], basket="b", time=5)
    one: Any = np.int32(1)
    two: Any = np.int64(2)
    three: Any = np.int8(3)
    five: Any = np.int16(5)
    numpy.learn(one, [two, three], basket=np.str_("b"), time=five)
    assert numpy.digest() == plain.digest()
    assert type(numpy.history(1)[0].time) is int
    assert [type(item) for item in numpy.items()] == [int, int]


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
def test_a_history_that_is_no_longer_long(grouping: Grouping, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long histories have a set of their basket ids, which must stay complete when a history gets shorter."""
    monkeypatch.setattr("unbasket.engine.histories.LONG", 4)
    rec = ub.Recommender(params(grouping))
    for basket in range(6):
        rec.learn("u", ["milk"], basket=basket)
    for basket in range(4):
        rec.forget("u", basket=basket)
    assert rec.learn("u", ["milk"], basket=9) is Learned.ADDED
    assert rec.learn("u", ["milk"], basket=9) is Learned.UNCHANGED
    assert [basket.basket for basket in rec.history("u")] == [4, 5, 9]


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
        assert {kept.basket: kept.items for kept in history} == expected
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
    assert shop.forget("cat", basket=7) == Forgotten(purchases=1, baskets=1, users=1)
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
    {"user": "unknown"},
    {"user": "unknown", "basket": 1},
    {"user": "ann", "basket": 3},
    {"user": "ann", "basket": 7},
    {"user": "ann", "basket": 2, "item": "bread"},
    {"user": "ann", "basket": 1, "item": "salt"},
    {"user": "ann", "item": "tea"},
    {"user": "ann", "item": "salt"},
    {"user": "ann", "basket": 3, "item": "milk"},
]


@pytest.mark.parametrize("what", NOTHING, ids=str)
def test_forgetting_something_unknown_is_a_no_op(shop: ub.Recommender, what: dict[str, Any]) -> None:
    before = state(shop)
    forgotten = shop.forget(**what)
    assert forgotten == Forgotten(0, 0, 0)
    assert not forgotten
    assert state(shop) == before


def test_a_forget_is_true_in_a_condition(shop: ub.Recommender) -> None:
    assert shop.forget("ann", basket=2)


def test_the_maps_of_ids_keep_no_residue(shop: ub.Recommender) -> None:
    shop.digest()
    shop.digest()
    for user in shop.users():
        shop.forget(user)
    assert shop._model.digest._tree.residue() == 0  # at once: a hash confirms a guess
    live = shop._state
    names = [*live.users.names, *live.items.names, *live.baskets._names]
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


def test_every_user_is_found_however_large_n_is() -> None:
    rec = ub.Recommender(params())
    for user in range(5):
        rec.learn(user, range(10 * user, 11 * user + 1), basket=1)
    for n in (4, 2**62, 2**63 - 1, 2**63, 10**30):
        assert len(rec.similar_users(0, n)) == 4


# Inspecting -----------------------------------------------------------------------------------------------------


def test_vectors_by_hand(shop: ub.Recommender) -> None:
    assert list(shop.vector("ann").items()) == [("bread", 0.25), ("milk", 0.75)]
    assert shop.vector("bob") == {"milk": 1.0, "tea": 1.0}
    shop.learn("cat", ["salt", 7], basket=2)
    assert list(shop.vector("cat").items()) == [("7", 0.5), ("salt", 0.5), ("tea", 0.25)]


def test_vectors_are_not_rounded() -> None:
    rec = ub.Recommender(ub.Params(group_size=3, basket_decay=0.9, alpha=0.8))
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
    for user in (100, 10, 9, 2, 0):
        rec.learn(user, ["x"], basket=1)
    assert rec.similar_users(0) == [(2, 0.0), (9, 0.0), (10, 0.0), (100, 0.0)]
    assert rec.similar_users(0, 3) == [(2, 0.0), (9, 0.0), (10, 0.0)]


def test_histories(shop: ub.Recommender) -> None:
    assert shop.history("ann") == [Basket(1, 10, ("bread", "milk")), Basket(2, 20, ("milk",))]
    assert shop.history("bob") == [Basket(1, None, ("milk", "tea"))]
    assert shop.history("bob")[0].items == ("milk", "tea")


def test_users_items_and_membership(shop: ub.Recommender) -> None:
    shop.learn(3, [8, "aa"], basket=1)
    assert shop.users() == ["3", "ann", "bob", "cat"]
    assert shop.items() == ["8", "aa", "bread", "milk", "tea"]
    assert len(shop) == 4
    assert 3 in shop
    assert "3" in shop
    assert "ann" in shop
    assert "03" not in shop
    assert "dan" not in shop
    assert shop.params == params()


def test_the_defaults() -> None:
    assert ub.Recommender().params == ub.Params()


# Proving --------------------------------------------------------------------------------------------------------


def spoil_norm(index: Index, user: int) -> None:
    shard, row = testing.where(index, user)
    testing.norms(shard)[row] += 1


def spoil_first(pool: JaggedArray, row: int, record: np.dtype[Any]) -> None:
    """Change the weight of the first record of a row."""
    testing.row(pool, row, record)["weight"][0] += 1


def spoil_vector(index: Index, user: int) -> None:
    shard, row = testing.where(index, user)
    spoil_first(shard.vectors, row, testing.ENTRY)


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


def test_an_orphaned_item_is_found(shop: ub.Recommender) -> None:
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
    other.learn("cat", ["tea"], basket=7)
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
    """Users with equal baskets each change the digest."""
    rec = ub.Recommender(params())
    seen = {rec.digest()}
    for user in range(4):
        rec.learn(user, ["a"], basket=1)
        seen.add(rec.digest())
    assert len(seen) == 5


def test_group_boundaries_are_in_the_digest() -> None:
    rows = pl.DataFrame({"user": [1, 1], "basket": [1, 2], "item": ["a", "a"], "one": [1, 1], "two": [1, 2]})
    joined = ub.Recommender(params("varying")).fit(rows, group="one")
    apart = ub.Recommender(params("varying")).fit(rows, group="two")
    assert (joined.groups(1), apart.groups(1)) == ([2], [1, 1])
    assert joined.digest() != apart.digest()


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
def test_the_hash_of_a_changed_user_is_wiped_at_once(change: Callable[[ub.Recommender], object]) -> None:
    rec = ub.Recommender(ub.Params())
    rec.learn("ann", ["milk", "tea"], basket=1)
    rec.digest()
    tree = rec._model.digest._tree
    assert tree.residue()
    change(rec)
    assert tree.residue() == 0


def test_a_basket_id_that_was_learned_twice_is_removed_with_its_basket() -> None:
    rec = ub.Recommender(ub.Params())
    for items in (["milk"], ["milk"], ["tea"]):
        rec.learn("ann", items, basket=7)
    rec.forget("ann")
    assert rec.id_types()["basket"] is None


def test_a_vector_may_be_too_small_for_fixed_point() -> None:
    """One basket of 60 counted groups weighs 2^-59, less than the index can hold: its user has no weight there."""
    rec = ub.Recommender(ub.Params(group_size=60, group_decay=0.5, neighbors=2, alpha=0.5, grouping="count"))
    rec.learn("ann", ["milk"], basket=1)
    assert rec.recommend("ann") == []
    for basket in range(60):
        rec.learn("bob", ["tea"], basket=basket)
    assert [item for item, _ in rec.recommend("ann")] == ["tea"]
    assert rec.verify() == (True, 2, ())
    rec.forget("ann")
    assert rec.verify() == (True, 1, ())
