"""Models of others beside ours: anything with `fit` and `recommend`, or a function of histories, as a ranker."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import polars as pl

from unbasket.domain.ids import Id
from unbasket.domain.results import Progress
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.baselines import Ranker
from unbasket.evaluation.histories import baskets_of, of_users
from unbasket.evaluation.protocols import Split


@runtime_checkable
class Model(Protocol):
    """A model that is fitted to purchases (user, basket, item and, if baskets are dated, time), then asked.

    `recommend` returns the best items for a user, best first, as items or as pairs that begin with the item. Under
    protocols that ask for users whom the model was not fitted to, it also needs `recommend_for(baskets, n)`, which gets
    such a user's baskets, oldest first. `fit` starts over: it is called for each keyset.
    """

    def fit(self, frame: pl.DataFrame, /) -> Any: ...

    def recommend(self, user: Any, n: int, /) -> Iterable[Any]: ...


@runtime_checkable
class SteppedRanker(Protocol):
    """A ranker that reports the users done and in total while it ranks."""

    def rank(self, history: pl.DataFrame, split: Split, n: int, progress: Progress) -> pl.DataFrame: ...


def rank_with(
    ranker: Ranker | SteppedRanker, history: pl.DataFrame, split: Split, n: int, progress: Progress
) -> pl.DataFrame:
    """Rank with any ranker; one that does not report its progress is done at once."""
    if isinstance(ranker, SteppedRanker):
        return ranker.rank(history, split, n, progress)
    ranked = ranker(history, split, n)
    progress(len(split.queries), len(split.queries))
    return ranked


def ranker_of(name: str, model: Any) -> Ranker | SteppedRanker:
    """Return a caller's model as a ranker.

    It is a `Model`, a class of such, or a function (history, split, n) that returns the items of each query user, best
    first: a mapping from users to lists, or a frame as a `Ranker` returns.
    """
    if isinstance(model, Model):
        return FittedRanker(name, model)
    if callable(model):
        return FunctionRanker(name, model)
    raise InvalidRequestError(
        f"model {name!r} must have fit(frame) and recommend(user, n), or be a function of (history, split, n), not "
        f"{type(model).__name__}"
    )


@dataclass(frozen=True, slots=True)
class FittedRanker:
    """A model with `fit` and `recommend` as a ranker; of a class, each split gets a new model."""

    name: str
    model: Any

    def rank(self, history: pl.DataFrame, split: Split, n: int, progress: Progress) -> pl.DataFrame:
        """Fit the model to the candidates, and ask it for each query user."""
        model = self.model() if isinstance(self.model, type) else self.model
        model.fit(of_users(history, split.candidates))
        known = set(split.candidates)
        unknown = split.queries.filter([user not in known for user in split.queries])
        if len(unknown) and not hasattr(model, "recommend_for"):
            raise InvalidRequestError(
                f"model {self.name!r} is asked for user {unknown[0]!r}, whom it may not be fitted to under this "
                "protocol. Give it recommend_for(baskets, n), or choose the protocol all-users"
            )
        baskets, lists = baskets_of(history, unknown), {}
        for done, user in enumerate(split.queries, 1):
            best = model.recommend(user, n) if user in known else model.recommend_for(baskets[user], n)
            lists[user] = list(best)[:n]
            progress(done, len(split.queries))
        return rankings_of(self.name, lists, history, split)


@dataclass(frozen=True, slots=True)
class FunctionRanker:
    """A function of histories as a ranker."""

    name: str
    function: Callable[[pl.DataFrame, Split, int], Any]

    def __call__(self, history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
        """Ask the function, and check its answer."""
        answer = self.function(history, split, n)
        if isinstance(answer, pl.DataFrame):
            answer = dict(answer.select("user", "items").iter_rows())
        if not isinstance(answer, Mapping):
            raise InvalidRequestError(
                f"model {self.name!r} must return a mapping from users to lists of items, or a frame with the columns "
                f"user and items, not {type(answer).__name__}"
            )
        lists = {user: list(answer.get(user, ()))[:n] for user in split.queries}
        return rankings_of(self.name, lists, history, split)


def rankings_of(name: str, lists: Mapping[Id, list[Any]], history: pl.DataFrame, split: Split) -> pl.DataFrame:
    """Return a row (user, items) per query user, with an empty list for a user without any items."""
    flat = [(user, _item(entry)) for user, entries in lists.items() for entry in entries]
    schema = {"user": split.queries.dtype, "item": history.schema["item"]}
    try:
        rows = pl.DataFrame([[user for user, _ in flat], [item for _, item in flat]], schema)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise InvalidRequestError(f"model {name!r} recommends what is no item of the data: {error}") from error
    best = rows.group_by("user", maintain_order=True).agg(items="item")
    queries = pl.DataFrame({"user": split.queries})
    return queries.join(best, on="user", how="left", maintain_order="left").with_columns(pl.col("items").fill_null([]))


def _item(entry: Any) -> Id:
    """Return the item of an entry: the entry itself, or its first part if it is a pair such as (item, score)."""
    item: Id = entry[0] if isinstance(entry, tuple | list) else entry
    return item
