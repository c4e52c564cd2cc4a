"""Named evaluation protocols and their splits. A figure means little without its protocol: published ones differ.

A split names the users whose next basket is predicted, and the users whose baskets may be used for it. Frames have the
columns user, basket, item and, optionally, time. Users are always in the order of their ids, so a split does not depend
on the order of rows.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.metrics import NdcgForm

PAPER_EXCLUDED_USER = 2939
"""Excluded by the paper's code in every dataset: the one user of ValuedShopper without a future."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Users by role. All of their baskets are history."""

    queries: pl.Series
    """Users whose next basket is predicted and scored."""
    candidates: pl.Series
    """Users among whom neighbors are sought, and whose baskets make an item popular."""


class HuUsers(NamedTuple):
    """The three sets of users in the original TIFU-kNN's split."""

    training: pl.Series
    validation: pl.Series
    test: pl.Series


class Holdout(NamedTuple):
    """A history and the baskets that were cut off its end."""

    history: pl.DataFrame
    future: pl.DataFrame


def all_users_split(history: pl.DataFrame, future: pl.DataFrame) -> Split:
    """Query every user with a history and a future; every user with a history is a candidate."""
    candidates = sorted_users(history)
    return Split(queries=_also_in(candidates, future), candidates=candidates)


def paper_split(history: pl.DataFrame, future: pl.DataFrame) -> Split:
    """Split as `all_users_split`, without the user that the paper's code excludes."""
    split = all_users_split(history, future)
    if not split.queries.dtype.is_integer():  # not the paper's data, so it lacks that user
        return split
    return Split(split.queries.filter(split.queries != PAPER_EXCLUDED_USER), split.candidates)


def hu_users(history: pl.DataFrame, future: pl.DataFrame) -> HuUsers:
    """Divide users with at least 2 history baskets and a future: 72 % training, 8 % validation, 20 % test."""
    baskets = history.group_by("user").agg(pl.col("basket").n_unique())
    users = _also_in(sorted_users(baskets.filter(pl.col("basket") >= 2)), future)
    training_end, test_start = len(users) * 72 // 100, len(users) * 80 // 100
    return HuUsers(users[:training_end], users[training_end:test_start], users[test_start:])


def hu_split(history: pl.DataFrame, future: pl.DataFrame) -> Split:
    """Query the test users; only training users are candidates."""
    users = hu_users(history, future)
    return Split(queries=users.test, candidates=users.training)


def hu_validation_split(history: pl.DataFrame, future: pl.DataFrame) -> Split:
    """Query the validation users, to tune under the protocol `hu` without its test users."""
    users = hu_users(history, future)
    return Split(queries=users.validation, candidates=users.training)


def hide_last_basket(history: pl.DataFrame) -> Holdout:
    """Cut off each user's last basket, as a future to tune against or for data without a future.

    The last basket has the highest (time, basket) or, without a time column, the latest first row. A user with a single
    basket keeps it, stays a candidate, and has no future.
    """
    order = ["time", "basket"] if "time" in history.columns else ["first_row"]
    baskets = history.with_row_index("first_row").unique(["user", "basket"], keep="first").sort(order)
    last = baskets.group_by("user").agg(pl.col("basket").last(), baskets=pl.len())
    hidden = last.filter(pl.col("baskets") >= 2).select("user", "basket")
    return Holdout(
        history=history.join(hidden, on=["user", "basket"], how="anti"),
        future=history.join(hidden, on=["user", "basket"], how="semi"),
    )


def sorted_users(frame: pl.DataFrame) -> pl.Series:
    """Return the users of a frame, in the order of their ids."""
    return frame["user"].unique().sort()


def _also_in(users: pl.Series, frame: pl.DataFrame) -> pl.Series:
    return sorted_users(pl.DataFrame({"user": users}).join(frame, on="user", how="semi"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationProtocol:
    """The choices of an evaluation, apart from the model and the data."""

    name: str
    summary: str
    split: Callable[..., Split]
    """(history, future) -> query users and candidates for neighbors."""
    ndcg: NdcgForm
    """The form in which figures under this protocol were published."""
    counts_itself: bool = False
    """The query counts as one of its own k neighbors, and is then dropped."""
    twins_once: bool = False
    """Of users with equal vectors, only the one with the lowest id is scored; see `first_of_twins`."""

    def true_neighbors(self, k: int) -> int:
        """Return the number of *other* users that are averaged when the parameter is k."""
        if self.counts_itself and k < 2:
            raise InvalidRequestError(f"protocol {self.name!r} needs at least 2 neighbors, not {k}")
        return k - 1 if self.counts_itself else k


def first_of_twins(users: Sequence[Hashable], vectors: Sequence[Hashable]) -> list[bool]:
    """Return which users, given in the order of their ids, are the first with their vector.

    The paper's code files a prediction under the id of the nearest user, assumed to be the query itself. Among users
    with equal vectors, the nearest is always the one with the lowest id. All of them get the same prediction, so the
    effect is that the others are not scored. A vector may be anything hashable, such as its bytes.

    >>> first_of_twins([11, 12, 13], ["a", "b", "a"])
    [True, True, False]
    """
    first: dict[Hashable, Hashable] = {}
    for user, vector in zip(users, vectors, strict=True):
        first.setdefault(vector, user)
    return [first[vector] == user for user, vector in zip(users, vectors, strict=True)]


PAPER = EvaluationProtocol(
    name="paper",
    summary="as the paper's own code: all users but a hard-coded one, k-1 true neighbors, twins scored once",
    split=paper_split,
    ndcg="paper",
    counts_itself=True,
    twins_once=True,
)
ALL_USERS = EvaluationProtocol(
    name="all-users",
    summary="every user with a future, k true neighbors among all other users",
    split=all_users_split,
    ndcg="paper",
)
HU = EvaluationProtocol(
    name="hu",
    summary="original TIFU-kNN: users with 2 baskets or more, by id 72/8/20, neighbors from the first 72 %",
    split=hu_split,
    ndcg="hu",
)
PROTOCOLS = {protocol.name: protocol for protocol in (PAPER, ALL_USERS, HU)}
