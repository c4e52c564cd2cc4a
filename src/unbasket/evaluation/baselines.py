"""Most frequent items: simple baselines that are hard to beat (docs/evaluation.md has figures).

Frequency is a number of baskets, since a basket is a set. Ties are broken by popularity (the number of candidates'
baskets that hold the item), then by item id, so the result never depends on row order.
"""

from typing import Protocol

import polars as pl

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.protocols import Split


class Ranker(Protocol):
    """A model that predicts next baskets: an engine, a baseline, another library.

    `history` has the columns user, basket, item and, if baskets are dated, time. A ranker may use the baskets of the
    split's candidates for all predictions, and a query's own baskets for that query. It returns one row per query:
    `user` and `items`, a list of at most n distinct items, best first. A user without a prediction keeps the row, with
    an empty list, and so counts as a miss.
    """

    def __call__(self, history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame: ...


def g_topfreq(history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """Rank the most popular items: the same list for every user."""
    return _top(_popular(_popularity(history, split), split, n), split, n)


def p_topfreq(history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """Rank the user's own most frequent items. A user with fewer than n distinct items gets a shorter list."""
    return _top(_frequent(history, _popularity(history, split), split), split, n)


def gp_topfreq(history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """Rank the user's own most frequent items, then the most popular other items."""
    popularity = _popularity(history, split)
    own = _frequent(history, popularity, split)
    others = _popular(popularity, split, n).join(own, on=["user", "item"], how="anti")
    return _top(pl.concat([own, others], how="diagonal_relaxed"), split, n)


BASELINES: dict[str, Ranker] = {"G-TopFreq": g_topfreq, "P-TopFreq": p_topfreq, "GP-TopFreq": gp_topfreq}


def _popularity(history: pl.DataFrame, split: Split) -> pl.DataFrame:
    return _purchases(history, split.candidates).group_by("item").agg(popularity=pl.len())


def _frequent(history: pl.DataFrame, popularity: pl.DataFrame, split: Split) -> pl.DataFrame:
    frequency = _purchases(history, split.queries).group_by("user", "item").agg(frequency=pl.len())
    return frequency.join(popularity, on="item", how="left").with_columns(pl.col("popularity").fill_null(0))


def _popular(popularity: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    top = popularity.sort("popularity", "item", descending=[True, False]).head(n)
    return pl.DataFrame({"user": split.queries}).join(top, how="cross").with_columns(frequency=pl.lit(0))


def _purchases(history: pl.DataFrame, users: pl.Series) -> pl.DataFrame:
    """Return the users' purchases, an item once per basket."""
    wanted = pl.DataFrame({"user": users})
    return history.select("user", "basket", "item").unique().join(wanted, on="user", how="semi")


def _top(rows: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """Return the first n items of each query user; a user without rows gets an empty list."""
    if n < 1:
        raise InvalidRequestError(f"n must be at least 1, not {n}")
    best = (
        rows.sort("frequency", "popularity", "item", descending=[True, True, False])
        .group_by("user", maintain_order=True)
        .agg(items=pl.col("item").head(n))
    )
    return (
        pl.DataFrame({"user": split.queries})
        .join(best, on="user", how="left")
        .with_columns(pl.col("items").fill_null([]))
        .sort("user")
    )
