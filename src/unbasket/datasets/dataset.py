"""A dataset: purchase histories, and what is known about them."""

from dataclasses import dataclass, replace

import polars as pl

from unbasket.errors import DatasetError
from unbasket.params import Params

PURCHASE_COLUMNS = ("user", "basket", "item", "time")
ITEM_COLUMNS = ("item", "name", "category")


@dataclass(frozen=True, slots=True)
class Statistics:
    """The figures of the paper's Table 1. A purchase is an item of a basket, however many of it."""

    users: int
    items: int
    baskets: int
    purchases: int
    basket_size: float
    basket_size_with_repeats: float
    baskets_per_user: float


@dataclass(frozen=True, slots=True)
class Returns:
    """Rows of a table that are not purchases: nothing was bought, or something was brought back."""

    zero: int
    taken_out: int
    unmatched: int


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Purchases of a shop.

    `history` and `future` have the columns user, basket, item, time: one row per item of a basket, sorted by
    user, time and basket. `time` is an integer, the same for all rows of a basket. A further column,
    `quantity`, is there only where the source lists an item more than once in a basket. `future` holds at
    most one basket per user, the one to be predicted. `items` has the columns item, name, category. `skipped`
    counts the rows that were left out because the caller asked for it, `returns` those that were not purchases by
    their quantity, where the caller named such a column.
    """

    name: str
    history: pl.DataFrame
    future: pl.DataFrame | None = None
    items: pl.DataFrame | None = None
    params: Params | None = None
    notes: str = ""
    skipped: int = 0
    returns: Returns | None = None

    def __post_init__(self) -> None:
        _require(self.name, "history", self.history, PURCHASE_COLUMNS)
        if self.future is not None:
            _require(self.name, "future", self.future, PURCHASE_COLUMNS)
        if self.items is not None:
            _require(self.name, "items", self.items, ITEM_COLUMNS)

    def statistics(self) -> Statistics:
        """Statistics of the history alone, as in the paper."""
        return statistics(self.history)


def _require(name: str, part: str, frame: pl.DataFrame, columns: tuple[str, ...]) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise DatasetError(
            f"{name}: {part} has no column {', '.join(missing)}. Columns found: {', '.join(frame.columns)}"
        )


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

    A future that the dataset had is left out: what follows the hidden basket must not be its target as well.
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
