"""Purchases by their quantity: rows with 0, and returns, which are taken out of the baskets that they were in."""

from collections import defaultdict
from dataclasses import dataclass

import polars as pl

FIRST_ROW = "__first_row"  # the first row of a basket, which orders baskets without times
_DIGITS = 6  # quantities are rounded: 0.1 + 0.2 - 0.3 must be 0


@dataclass(frozen=True, slots=True)
class Returns:
    """Counts of rows with a quantity of 0, of returns, and of returns of what was not bought; of purchases undone.

    A purchase is undone if all of it was returned.
    """

    zero: int
    taken_out: int
    unmatched: int
    undone: int


def quantities(rows: pl.Expr) -> dict[str, pl.Expr]:
    """Return the sums over rows of one purchase that `remove_returns` needs."""
    return {
        "quantity": rows.sum(),
        "zero": (rows == 0).sum(),
        "returned": (rows < 0).sum(),
        "bought": (rows > 0).sum(),
    }


def remove_returns(purchases: pl.DataFrame) -> tuple[pl.DataFrame, Returns]:
    """Remove returned purchases and rows with a quantity of 0, and count both.

    A row of `purchases` is an item of a basket, with its `quantities`. A negative sum is taken out of the newest of the
    user's earlier baskets that have the item. Baskets are sets, so the remaining quantity does not matter and its
    column is dropped.
    """
    clock = pl.col("time" if "time" in purchases.columns else FIRST_ROW).alias("clock")
    frame = purchases.with_columns(clock, pl.col("quantity").round(_DIGITS)).with_row_index("position")
    returned, bought = frame.filter(pl.col("quantity") < 0), frame.filter(pl.col("quantity") > 0)
    gone, unmatched = _match_returns(bought.join(returned, on=["user", "item"], how="semi"), returned)
    rest = bought.filter(~pl.col("position").is_in(gone))
    undone = frame.filter(pl.col("bought") > 0).height - rest.height
    taken_out = int(frame["returned"].sum()) - unmatched
    further = ("position", "clock", "quantity", "zero", "returned", "bought")
    return rest.drop(further), Returns(int(frame["zero"].sum()), taken_out, unmatched, undone)


def _match_returns(bought: pl.DataFrame, returned: pl.DataFrame) -> tuple[list[int], int]:
    """Return the positions of fully returned purchases, and the number of rows that return what was not bought."""
    held: defaultdict[tuple[object, object], list[list[float]]] = defaultdict(list)
    columns = ("user", "item", "clock", "position", "quantity")
    for user, item, clock, position, quantity in bought.sort("clock", "basket").select(columns).iter_rows():
        held[user, item].append([clock, position, quantity])
    unmatched = 0
    columns = ("user", "item", "clock", "quantity", "returned")
    for user, item, clock, quantity, rows in returned.sort("clock", "basket").select(columns).iter_rows():
        if _take_back(held[user, item], clock, -quantity) > 0:
            unmatched += rows
    return [int(position) for bought in held.values() for _, position, left in bought if left == 0], unmatched


def _take_back(bought: list[list[float]], clock: int, amount: float) -> float:
    """Subtract an amount from purchases made until `clock`, the newest first; return the amount left over."""
    for purchase in reversed(bought):
        if purchase[0] <= clock:
            taken = min(purchase[2], amount)
            purchase[2] = round(purchase[2] - taken, _DIGITS)
            amount = round(amount - taken, _DIGITS)
    return amount
