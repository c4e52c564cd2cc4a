"""Named evaluation protocols. A figure means little without its protocol, since published protocols differ."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import polars as pl

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.metrics import NdcgForm
from unbasket.evaluation.splits import Split, all_users_split, hu_split, paper_split


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationProtocol:
    """The choices of an evaluation, apart from the model and the data."""

    name: str
    summary: str
    split: Callable[[pl.DataFrame, pl.DataFrame], Split]
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
