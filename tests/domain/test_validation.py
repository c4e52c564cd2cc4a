"""Bad arguments of every method: an error that names the value, and no change."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.small_shop import small_shop, state

import unbasket as ub
from unbasket.core.index import MAX_BASKET


@pytest.fixture
def shop() -> ub.Recommender:
    return small_shop()


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
