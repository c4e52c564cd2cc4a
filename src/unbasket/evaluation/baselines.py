"""Most frequent items: simple baselines that are hard to beat (docs/evaluation.md has figures).

Frequency is a number of baskets, since a basket is a set. Equally frequent items are ordered by popularity
(baskets of the candidates that hold the item), then by item id, so the result never depends on row order.
"""

import polars as pl

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.rankers import Ranker
from unbasket.evaluation.splits import Split


def g_topfreq(history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """The most popular items of all, the same list for everybody."""
    return _ranked(_offers(_popularity(history, split), split, n), split, n)


def p_topfreq(history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """The user's own most frequent items. A user with fewer than n distinct items gets a shorter list."""
    return _ranked(_own(history, _popularity(history, split), split), split, n)


def gp_topfreq(history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """The user's own most frequent items, the list filled up with the most popular others."""
    popularity = _popularity(history, split)
    own = _own(history, popularity, split)
    others = _offers(popularity, split, n).join(own, on=["user", "item"], how="anti")
    return _ranked(pl.concat([own, others], how="diagonal_relaxed"), split, n)


BASELINES: dict[str, Ranker] = {"G-TopFreq": g_topfreq, "P-TopFreq": p_topfreq, "GP-TopFreq": gp_topfreq}


def _popularity(history: pl.DataFrame, split: Split) -> pl.DataFrame:
    """Item -> number of the candidates' baskets that hold it."""
    return _purchases(history, split.candidates).group_by("item").agg(popularity=pl.len())


def _own(history: pl.DataFrame, popularity: pl.DataFrame, split: Split) -> pl.DataFrame:
    """What each query user bought: how often, and how popular it is."""
    frequency = _purchases(history, split.queries).group_by("user", "item").agg(frequency=pl.len())
    return frequency.join(popularity, on="item", how="left").with_columns(pl.col("popularity").fill_null(0))


def _offers(popularity: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """The n most popular items for each query user, as if the user had never bought them."""
    top = popularity.sort("popularity", "item", descending=[True, False]).head(n)
    return pl.DataFrame({"user": split.queries}).join(top, how="cross").with_columns(frequency=pl.lit(0))


def _purchases(history: pl.DataFrame, users: pl.Series) -> pl.DataFrame:
    """The users' purchases, an item once per basket."""
    wanted = pl.DataFrame({"user": users})
    return history.select("user", "basket", "item").unique().join(wanted, on="user", how="semi")


def _ranked(rows: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
    """The first n items of each query user; users without any row get an empty list."""
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
