"""Recommendations, worked out by hand on the small shop, and for histories that are not stored; popular items."""

import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.small_shop import BREAD, CATEGORIES, GROUPINGS, MILK, TEA, params, state

import unbasket as ub
from unbasket import BasketShare, Explanation
from unbasket.core.arrays import Int64s
from unbasket.core.model import Histories, queries
from unbasket.errors import BusyError
from unbasket.params import Grouping


def test_recommendations_by_hand(shop: ub.Recommender) -> None:
    assert shop.recommend("ann") == [("milk", MILK), ("tea", TEA), ("bread", BREAD)]
    assert shop.recommend("bob") == [("tea", 0.75), ("milk", 0.6875), ("bread", 0.0625)]
    assert shop.recommend("cat") == [("tea", 0.75), ("milk", 0.4375), ("bread", 0.0625)]
    assert shop.recommend("ann", 1)[0].item == "milk"
    assert shop.recommend("ann", 1)[0].score == MILK


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 10**30])
def test_n_items_or_all(shop: ub.Recommender, n: int) -> None:
    assert [item for item, _ in shop.recommend("ann", n)] == ["milk", "tea", "bread"][:n]
    assert shop.recommend_many(["ann"], n) == {"ann": shop.recommend("ann", n)}
    assert shop.recommend_for([["milk", "bread"], ["milk"]], n, user="ann") == shop.recommend("ann", n)
    assert [item for item, _ in shop.popular(n)] == ["milk", "tea", "bread"][:n]
    assert [user for user, _ in shop.similar_users("ann", n)] == ["bob", "cat"][:n]


def test_n_may_be_a_numpy_number(shop: ub.Recommender) -> None:
    assert len(shop.recommend("ann", np.int8(2))) == 2  # type: ignore[arg-type]


def test_a_cart_is_the_newest_basket_and_not_recommended(shop: ub.Recommender) -> None:
    """With {tea} as a third basket, ann has milk 3/16, bread 1/16, tea 1/2; both others are her neighbors."""
    before = state(shop)
    assert shop.recommend("ann", cart=["tea"]) == [("milk", 0.34375), ("bread", 0.03125)]
    assert shop.recommend("ann", cart=["milk", "milk", "unheard of"], only_new=True) == [("tea", TEA)]
    assert shop.recommend("ann", cart=[]) == shop.recommend("ann")
    assert shop.recommend("new user", cart=["milk"]) == shop.recommend_for([["milk"]], exclude=["milk"])
    assert shop.recommend("new user", cart=["unheard of"]) == shop.recommend_for([["x"]], exclude=["x"])
    assert state(shop) == before


def test_a_cart_of_a_visitor(shop: ub.Recommender) -> None:
    expected = shop.recommend_for([["milk"], ["tea"]], exclude=["tea"])
    assert shop.recommend_for([["milk"]], cart=["tea"]) == expected
    assert shop.recommend_for([["milk"]], cart=["tea"], only_new=True) == expected[1:]
    assert shop.recommend_for([], cart=["tea"]) == shop.recommend("new user", cart=["tea"])
    assert "unheard of" not in dict(shop.recommend_for([["milk"]], cart=["unheard of"]))
    assert shop.recommend_for([["milk"], ["tea"]], cart=[]) == shop.recommend_for([["milk"], ["tea"]])


def test_equal_scores_are_in_the_order_of_ids() -> None:
    rec = ub.Recommender(params())
    rec.learn("u", [10, 9, -1, 100, 2**62], basket=1)
    assert [item for item, _ in rec.recommend("u", 6)] == [-1, 9, 10, 100, 2**62]
    assert [item for item, _ in rec.recommend("u", 3)] == [-1, 9, 10]
    assert [item for item, _ in rec.recommend("u", 4, exclude=[9])] == [-1, 10, 100, 2**62]
    rec.change_ids(item="text")
    assert [item for item, _ in rec.recommend("u", 6)] == ["-1", "10", "100", str(2**62), "9"]


def test_a_user_alone_has_no_neighbors() -> None:
    rec = ub.Recommender(params())
    rec.learn("u", ["a"], basket=1)
    assert rec.recommend("u") == [("a", 0.5)]
    assert rec.similar_users("u") == []
    assert rec.explain("u", "a") == Explanation("a", 0.5, (BasketShare(1, None, 0.5),), 0.0, 0, 0, 1.0, 0.5, 1.0)


def test_recommending_to_many(shop: ub.Recommender) -> None:
    everyone = shop.recommend_many(n=2)
    assert list(everyone) == ["ann", "bob", "cat"]
    assert everyone == {user: shop.recommend(user, 2) for user in shop.users()}
    some = shop.recommend_many(iter(["cat", "ann"]))
    assert list(some) == ["cat", "ann"]
    assert some == {user: shop.recommend(user) for user in ("cat", "ann")}
    assert shop.recommend_many([]) == {}
    assert ub.Recommender(params()).recommend_many() == {}


def test_recommending_to_many_of_whom_some_are_unknown(shop: ub.Recommender) -> None:
    asked = ["eve", "ann", "zoe"]
    with pytest.raises(ub.UnknownUserError, match="eve"):
        shop.recommend_many(asked)
    assert shop.recommend_many(asked, unknown="skip") == {"ann": shop.recommend("ann")}
    popular = [*map(tuple, shop.popular(2, exclude=["tea"]))]
    answers = shop.recommend_many(asked, 2, exclude=["tea"], unknown="popular")
    assert list(answers) == asked
    assert answers == {"eve": popular, "ann": shop.recommend("ann", 2, exclude=["tea"]), "zoe": popular}
    assert isinstance(answers["eve"][0], ub.Recommendation)
    assert shop.recommend_many(unknown="popular") == shop.recommend_many()
    assert shop.recommend_frame(asked, 1, unknown="popular")["user"].to_list() == asked
    with pytest.raises(ub.UnbasketError, match=r'must be "raise", "skip" or "popular", not \'forget\''):
        shop.recommend_many(asked, unknown="forget")  # type: ignore[arg-type]


def test_progress_is_reported(shop: ub.Recommender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.recommending._CHUNK", 2)
    calls: list[tuple[int, int]] = []
    answers = shop.recommend_many(progress=lambda done, total: calls.append((done, total)))
    assert calls == [(2, 3), (3, 3)]
    assert answers == {user: shop.recommend(user) for user in shop.users()}


def test_recommending_for_a_history_that_is_not_stored(shop: ub.Recommender) -> None:
    """{milk}: bob is at distance 1, ann at sqrt(1/16 + 1/16), cat at sqrt(2)."""
    assert shop.recommend_for([["milk"]]) == [("milk", 0.9375), ("tea", 0.25), ("bread", 0.0625)]
    assert shop.recommend_for([["milk"]], 1, exclude=["milk"]) == [("tea", 0.25)]
    assert shop.recommend_for([("milk", "milk")]) == shop.recommend_for([["milk"]])


def test_unknown_items_are_recommended_too_and_leave_no_residue(shop: ub.Recommender) -> None:
    before = state(shop)
    answer = shop.recommend_for([["secret", "milk"], ["secret", 99]], n=10)
    assert {"secret", "99"} < {item for item, _ in answer}
    assert answer[0] == ("secret", 0.375)
    assert answer == sorted(answer, key=lambda each: (-each.score, each.item))
    assert shop.recommend_for([["secret", "milk"], ["secret", 99]], n=2) == answer[:2]
    assert shop.recommend_for([["secret"]], exclude=["secret"])
    assert all(item != "secret" for item, _ in shop.recommend_for([["secret"]], exclude=["secret"]))
    assert state(shop) == before
    assert "secret" not in shop._state.items.names
    assert "99" not in shop._state.items.names
    assert shop.verify().ok


def test_filters_apply_to_unknown_items_too(shop: ub.Recommender) -> None:
    shop.describe(pl.DataFrame({"item": ["secret", "milk"], "name": "a name", "category": ["wines", "cold"]}))

    def found(**filters: Any) -> list[str]:
        return [str(item) for item, _ in shop.recommend_for([["secret", "gin"]], **filters)]

    assert {"secret", "gin"} <= set(found())
    assert found(only=["secret"]) == found(only=frozenset(["secret"])) == found(category="wines") == ["secret"]
    assert "secret" not in found(exclude=["secret"])
    assert "secret" not in found(cart=["secret"])
    assert not {"secret", "gin"} & set(found(only_new=True))
    shop.suppress("ann", "secret")
    assert "secret" not in found(user="ann")
    assert "secret" in found(user="bob")
    shop.hide(["gin"])
    assert "gin" not in found()


def test_a_query_never_takes_the_writing_lock(shop: ub.Recommender, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries run beside each other, whatever they ask for."""
    shop.describe(CATEGORIES)

    class Refusing:
        def __enter__(self) -> None:
            raise BusyError("a query took the writing lock")

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(shop._model.lock, "writing", Refusing())
    with pytest.raises(BusyError, match="writing lock"):
        shop.learn("ann", ["milk"], basket=99)
    for query in (
        lambda: shop.recommend("ann", cart=["unheard of"], only=["milk", "never seen"], only_new=True),
        lambda: shop.recommend("new user", cart=["unheard of", "milk"]),
        lambda: shop.recommend_many(["ann", "bob"], category="cold"),
        lambda: shop.recommend_frame(),
        lambda: shop.recommend_for([["unheard of"], ["milk", "never seen"]], user="ann", exclude=["gin"]),
        lambda: shop.recommend_for([], cart=["unheard of"]),
        lambda: shop.popular(only=["unheard of"]),
        lambda: shop.popular(since=15),
        lambda: shop.explain_many("ann", ["milk", "unheard of"]),
        lambda: (shop.vector("ann"), shop.similar_users("ann"), shop.history("ann"), shop.groups("ann")),
        lambda: (shop.users(), shop.items(), shop.hidden(), shop.suppressed("ann"), shop.sizes(), shop.id_types()),
        lambda: (shop.canonical_id("ann", "user"), shop.has_item("milk"), "ann" in shop, len(shop), repr(shop)),
        lambda: (shop.digest(), shop.verify(), shop.verify("ann"), shop.verify("unknown")),
    ):
        query()


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("seed", range(5))
def test_a_preview_equals_the_later_answer(grouping: Grouping, seed: int) -> None:
    chance = random.Random(seed)
    rec = ub.Recommender(params(grouping, neighbors=3))
    for user in range(12):
        for basket in range(chance.randint(1, 5)):
            rec.learn(user, chance.sample(range(20), chance.randint(1, 4)), basket=basket)
    for user in range(12):
        history: list[list[Any]] = [list(basket.items) for basket in rec.history(user)]
        assert rec.recommend_for(history, user=user) == rec.recommend(user)
        preview = rec.recommend_for([*history, [3, 99]], user=user)
        rec.learn(user, [3, 99], basket=99)
        assert rec.recommend(user) == preview
        rec.forget(user, basket=99)


def test_a_preview_of_a_removed_item(shop: ub.Recommender) -> None:
    preview = shop.recommend_for([["bread"]], user="ann")
    shop.forget("ann", item="milk")
    assert shop.recommend("ann") == preview


def test_a_preview_for_an_unknown_user_leaves_no_neighbor_out(shop: ub.Recommender) -> None:
    assert shop.recommend_for([["milk"]], user="unknown") == shop.recommend_for([["milk"]])
    assert "unknown" not in shop


def test_popular_items_are_counted_by_baskets(shop: ub.Recommender) -> None:
    assert shop.popular() == [("milk", 3), ("tea", 2), ("bread", 1)]
    shop.learn("dan", ["bread", 5], basket=1)
    assert shop.popular() == [("milk", 3), ("bread", 2), ("tea", 2), ("5", 1)]
    assert shop.popular(2) == [("milk", 3), ("bread", 2)]
    assert shop.popular(1)[0].count == 3


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
    """An item loses its code to another while users are counted."""
    monkeypatch.setattr("unbasket.engine.recommending._COUNTED", 1)
    rec = ub.Recommender(params())
    rec.learn(-1, ["rare"], basket=1, time=1)
    for user in range(40):
        rec.learn(user, ["common"], basket=1, time=1)
    count, steps = queries.add_popularity, []

    def count_and_change(histories: Histories, first: int, end: int, since: int, counts: Int64s) -> None:
        count(histories, first, end, since, counts)
        steps.append(end)
        if len(steps) == 2:  # as another thread could between two steps
            rec._state.forget(-1, None, None)
            rec._state.learn(39, ["other"], 2, 1)

    monkeypatch.setattr("unbasket.core.model.queries.add_popularity", count_and_change)
    assert rec.popular(since=0) == [("common", 40), ("other", 1)]
    assert steps == [4, 8, 16, 32, 48]


@pytest.mark.parametrize("method", ["recommend", "recommend_many", "recommend_frame", "recommend_for", "popular"])
def test_filters_are_keyword_only(shop: ub.Recommender, method: str) -> None:
    user = shop.users()[0]
    subjects = {"recommend": user, "recommend_many": [user], "recommend_frame": [user], "recommend_for": [["milk"]]}
    arguments = [*([subjects[method]] if method in subjects else []), 3]
    getattr(shop, method)(*arguments, exclude=["milk"])
    with pytest.raises(TypeError, match="positional"):
        getattr(shop, method)(*arguments, ["milk"])
