"""What was brought back: rows with a negative quantity, and the purchases that they undo."""

from collections import defaultdict

import polars as pl

from unbasket.datasets.dataset import Returns

_DIGITS = 6  # 0.1 + 0.2 - 0.3 is nothing


def without_returns(frame: pl.DataFrame) -> tuple[pl.DataFrame, Returns]:
    """The purchases of which something remains, and what became of the other rows.

    Within a basket, quantities were added up. What is still returned is taken out of the newest of the user's earlier
    baskets that have the item. Baskets are sets: how many remain of an item does not matter, so that `quantity` goes.
    """
    frame = frame.with_columns(pl.col("quantity").round(_DIGITS)).with_row_index("place")
    returned, bought = frame.filter(pl.col("quantity") < 0), frame.filter(pl.col("quantity") > 0)
    gone, unmatched = _matched(bought.join(returned, on=["user", "item"], how="semi"), returned)
    rest = bought.filter(~pl.col("place").is_in(gone)).drop("place", "quantity", "zero", "returned")
    returns = Returns(int(frame["zero"].sum()), int(frame["returned"].sum()) - unmatched, unmatched)
    return rest, returns


def _matched(bought: pl.DataFrame, returned: pl.DataFrame) -> tuple[list[int], int]:
    """The places of purchases of which nothing remains, and the number of rows that return what was not bought."""
    held: defaultdict[tuple[object, object], list[list[float]]] = defaultdict(list)
    for user, item, time, place, quantity in bought.sort("time").select(_PURCHASE).iter_rows():
        held[user, item].append([time, place, quantity])
    unmatched = 0
    for user, item, time, quantity, rows in returned.sort("time").select(_RETURN).iter_rows():
        if _take(held[user, item], time, -quantity) > 0:
            unmatched += rows
    return [int(place) for lots in held.values() for _, place, quantity in lots if quantity == 0], unmatched


_PURCHASE = ("user", "item", "time", "place", "quantity")
_RETURN = ("user", "item", "time", "quantity", "returned")


def _take(lots: list[list[float]], time: int, amount: float) -> float:
    """Take an amount out of what was bought until then, the newest first; returns what could not be taken."""
    for lot in reversed(lots):
        if lot[0] <= time:
            taken = min(lot[2], amount)
            lot[2], amount = round(lot[2] - taken, _DIGITS), round(amount - taken, _DIGITS)
    return amount
