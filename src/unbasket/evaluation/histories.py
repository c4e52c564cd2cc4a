"""Purchases of some users, as a frame and as baskets in order."""

import polars as pl

from unbasket.domain.ids import Id


def of_users(history: pl.DataFrame, users: pl.Series) -> pl.DataFrame:
    """Return the purchases of these users."""
    return history.join(pl.DataFrame({"user": users}), on="user", how="semi", maintain_order="left")


def baskets_of(history: pl.DataFrame, users: pl.Series) -> dict[Id, list[list[Id]]]:
    """Return each user's baskets, oldest first, in the engine's order."""
    purchases = in_order(of_users(history, users))
    baskets = purchases.group_by("user", "basket", maintain_order=True).agg("item")
    return dict(baskets.group_by("user", maintain_order=True).agg("item").iter_rows())


def in_order(purchases: pl.DataFrame) -> pl.DataFrame:
    """Return purchases with baskets from the oldest on: by (time, basket) or, without times, by first rows."""
    return purchases.sort("time", "basket", maintain_order=True) if "time" in purchases.columns else purchases
