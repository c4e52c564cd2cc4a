"""Disk to memory: rows of baskets as orders."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from unbasket.core.arrays import Int64s
from unbasket.core.codec import row_reader
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import Id
from unbasket.errors import StoreCorruptError
from unbasket.store.row_codec import SALTS, STEP, BasketRow, decode_basket, place_of, unsealed


class BasketReader:
    """Reads rows of baskets, some at a time, into columns. Those after row `upto` are counted apart."""

    def __init__(self, upto: int) -> None:
        self.unpacker = row_reader.RowReader(SALTS["baskets"], STEP, upto)

    def read(self, rows: list[tuple[int, bytes]]) -> None:
        """Read rows, given by their numbers and bodies."""
        wrong = self.unpacker.add(rows)
        if wrong >= 0:
            row, body = rows[wrong]
            decode_basket(unsealed("baskets", row, body))
            raise StoreCorruptError(f"row {row} of baskets holds no basket; it was written by something else")

    def orders(self) -> tuple[BasketColumns, Int64s]:
        """All that was read, and the row of each basket: user after user, each user's in the order of their places."""
        users, items, texts, columns = self.unpacker.columns()
        owners, places, rows = columns.pop("owners"), columns.pop("positions"), columns.pop("rows")
        sizes, purchases = columns.pop("sizes"), columns.pop("purchases")
        order = row_reader.sorted_by_user(owners, places, len(users))
        if not np.array_equal(order, np.arange(len(order))):
            purchases = row_reader.gathered(purchases, sizes, order)
            owners, rows, sizes = owners[order], rows[order], sizes[order]
            columns = {name: column[order] for name, column in columns.items()}
        orders = BasketColumns(
            users=users, items=items, texts=texts, owners=owners, sizes=sizes, purchases=purchases, **columns
        )
        return orders, rows


def orders_of(rows: Iterable[tuple[int, BasketRow]]) -> tuple[BasketColumns, Int64s]:
    """The orders that a few rows hold, and the row of each basket."""
    histories = defaultdict[Id, list[tuple[int, int, BasketRow]]](list)
    for row, basket in rows:
        histories[basket.user].append((place_of(row, basket), row, basket))
    for history in histories.values():
        history.sort(key=lambda placed: placed[0])
    orders = BasketColumns.of(
        (user, [(b.basket, b.time, b.items, b.opens) for _, _, b in history]) for user, history in histories.items()
    )
    return orders, np.array([row for history in histories.values() for _, row, _ in history], np.int64)
