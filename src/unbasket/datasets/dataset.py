"""A dataset: purchase histories with their products, parameters and notes."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import polars as pl

from unbasket.domain.returns import Returns
from unbasket.errors import DatasetError
from unbasket.params import Params

PURCHASE_COLUMNS = ("user", "basket", "item", "time")
ITEM_COLUMNS = ("item", "name", "category")


@dataclass(frozen=True, slots=True)
class Statistics:
    """The figures of the paper's Table 1. A purchase is an item of a basket, in any quantity."""

    users: int
    items: int
    baskets: int
    purchases: int
    basket_size: float
    basket_size_with_repeats: float
    baskets_per_user: float


class SkippedRows(NamedTuple):
    """Rows that were left out for one reason: how many, and the place and the bad value of the first."""

    reason: str
    rows: int
    place: str
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Purchases of a shop.

    `history` and `future` have the columns user, basket, item, time: one row per item of a basket, sorted by
    user, time and basket. `time` is an integer, the same for all rows of a basket. A further column, `quantity`,
    exists only where the source lists an item more than once in a basket. `future` holds at most one basket per user,
    the one to predict. `items` has the columns item, name, category. `skipped_rows` are the bad rows that the
    caller asked to leave out, by reason; `returns` counts the rows that are not purchases, if the caller named a column
    of quantities.
    """

    name: str
    history: pl.DataFrame
    future: pl.DataFrame | None = None
    items: pl.DataFrame | None = None
    params: Params | None = None
    notes: str = ""
    skipped_rows: tuple[SkippedRows, ...] = ()
    returns: Returns | None = None

    def __post_init__(self) -> None:
        for field, needed in (("history", PURCHASE_COLUMNS), ("future", PURCHASE_COLUMNS), ("items", ITEM_COLUMNS)):
            found = needed if getattr(self, field) is None else getattr(self, field).columns
            if not set(needed) <= set(found):
                missing = ", ".join(column for column in needed if column not in found)
                raise DatasetError(f"{self.name}: {field} has no column {missing}. Columns found: {', '.join(found)}")

    @property
    def skipped(self) -> int:
        """The number of bad rows that were left out."""
        return sum(each.rows for each in self.skipped_rows)

    def statistics(self) -> Statistics:
        """Return the statistics of the history alone, as in the paper."""
        return statistics(self.history)


def statistics(purchases: pl.DataFrame) -> Statistics:
    """Count the users, items and baskets of a frame of purchases."""
    baskets = purchases.select("user", "basket").n_unique() if purchases.height else 0
    users = purchases["user"].n_unique()
    units = int(purchases["quantity"].sum()) if "quantity" in purchases.columns else purchases.height
    return Statistics(
        users=users,
        items=purchases["item"].n_unique(),
        baskets=baskets,
        purchases=purchases.height,
        basket_size=purchases.height / baskets if baskets else 0.0,
        basket_size_with_repeats=units / baskets if baskets else 0.0,
        baskets_per_user=baskets / users if users else 0.0,
    )


def hold_out_last(dataset: Dataset) -> Dataset:
    """Hide each user's last history basket as the future. A user's only basket stays in the history.

    An existing future is dropped: baskets after the hidden one must not be part of the target.
    """
    newest = pl.col("basket").filter(pl.col("time") == pl.col("time").max()).max().over("user")
    several = pl.col("basket").n_unique().over("user") > 1
    hidden = (pl.col("basket") == newest) & several
    note = "Future: each user's last history basket, hidden from the history (users with at least two)."
    return replace(
        dataset,
        history=dataset.history.filter(~hidden),
        future=dataset.history.filter(hidden),
        notes=f"{dataset.notes} {note}".strip(),
    )
