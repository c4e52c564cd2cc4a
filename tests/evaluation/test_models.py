"""Models of a caller as rankers: with fit and recommend, as classes, and as functions."""

from typing import Any

import polars as pl
import pytest

import unbasket as ub
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.models import rank_with, ranker_of
from unbasket.evaluation.protocols import Split

HISTORY = pl.DataFrame(
    [(1, 1, 10, 1), (1, 2, 11, 2), (2, 1, 10, 1), (3, 1, 12, 1), (3, 2, 10, 2)],
    ["user", "basket", "item", "time"],
    orient="row",
)
ALL = Split(pl.Series("user", [1, 2, 3]), pl.Series("user", [1, 2, 3]))
NEW = Split(pl.Series("user", [3]), pl.Series("user", [1, 2]))


class Last:
    """A model that recommends a user's last item, with a score."""

    def __init__(self) -> None:
        self.last: dict[int, int] = {}

    def fit(self, frame: pl.DataFrame) -> None:
        self.last = dict(frame.sort("time").group_by("user").agg(pl.col("item").last()).iter_rows())

    def recommend(self, user: int, n: int) -> list[tuple[int, float]]:
        return [(self.last[user], 1.0), (99, 0.5)][:n]


class LastOfAny(Last):
    def recommend_for(self, baskets: list[list[int]], n: int) -> list[int]:
        return baskets[-1][:n]


def lists(model: Any, split: Split, n: int) -> dict[int, list[int]]:
    steps: list[tuple[int, int]] = []
    ranked = rank_with(ranker_of("mine", model), HISTORY, split, n, lambda *step: steps.append(step))
    assert steps[-1] == (len(split.queries), len(split.queries))
    return dict(ranked.iter_rows())


def test_a_model_is_fitted_to_the_candidates_and_asked() -> None:
    for model in (Last(), Last):
        assert lists(model, ALL, 1) == {1: [11], 2: [10], 3: [10]}
        assert lists(model, ALL, 5) == {1: [11, 99], 2: [10, 99], 3: [10, 99]}


def test_a_user_out_of_the_candidates_is_answered_from_the_users_baskets() -> None:
    assert lists(LastOfAny, NEW, 3) == {3: [10]}
    with pytest.raises(InvalidRequestError, match=r"'mine' is asked for user 3, .*Give it recommend_for"):
        lists(Last, NEW, 3)


def test_an_engine_is_a_model() -> None:
    assert lists(ub.Recommender(ub.Params(alpha=1.0)), NEW, 2) == {3: [10, 12]}


def test_a_function_returns_a_mapping_or_a_frame() -> None:
    def first(history: pl.DataFrame, split: Split, _: int) -> dict[int, list[int]]:
        return {user: history.filter(user=user)["item"].to_list() for user in split.queries if user != 2}

    def framed(history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
        found = first(history, split, n)
        return pl.DataFrame({"user": list(found), "items": list(found.values())})

    for function in (first, framed):
        assert lists(function, ALL, 1) == {1: [10], 2: [], 3: [12]}


def test_bad_models_are_named() -> None:
    with pytest.raises(
        InvalidRequestError, match=r"'mine' must have fit\(frame\) and recommend\(user, n\), .* not int"
    ):
        ranker_of("mine", 3)
    with pytest.raises(InvalidRequestError, match=r"must return a mapping .* not int"):
        lists(lambda *_: 3, ALL, 1)
    with pytest.raises(InvalidRequestError, match="'mine' recommends what is no item of the data"):
        lists(lambda *_: {1: ["milk"]}, ALL, 1)
