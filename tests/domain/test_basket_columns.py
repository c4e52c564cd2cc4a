"""Baskets as columns: there and back, and a selection of users."""

import numpy as np

from unbasket import Basket
from unbasket.domain.basket_columns import BasketColumns

COLUMNS = BasketColumns.of(
    [
        ("ann", [("a", 5, ("milk", "tea"), True), (7, None, ("tea",), False)]),
        (2, [("a", 1, ("gin",), True)]),
        ("cat", [(-1, None, ("milk", "gin"), True)]),
    ]
)


def test_columns_and_back() -> None:
    assert dict(COLUMNS.histories(np.arange(3))) == {
        "ann": [Basket("a", 5, ("milk", "tea")), Basket(7, None, ("tea",))],
        2: [Basket("a", 1, ("gin",))],
        "cat": [Basket(-1, None, ("milk", "gin"))],
    }
    assert [ends.tolist() for ends in COLUMNS.ends_by_user()] == [[2, 3, 4], [3, 4, 6]]


def test_a_selection_has_no_items_of_others() -> None:
    selected = COLUMNS.select(np.array([1, 2]))
    assert selected.users == [2, "cat"]
    assert sorted(map(str, selected.items)) == ["gin", "milk"]
    assert list(selected.histories(np.arange(2))) == list(COLUMNS.histories(np.array([1, 2])))


def test_no_users() -> None:
    assert list(BasketColumns.of([]).histories(np.arange(0))) == []
