"""Baskets as columns: there and back, and a selection of users."""

import numpy as np
import pytest

from unbasket import Basket, InvalidIdError
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import IdTypes

COLUMNS = BasketColumns.of(
    [
        ("ann", [("a", 5, ("milk", "tea"), True), ("7", None, ("tea",), False)]),
        ("2", [("a", 1, ("gin",), True)]),
        ("cat", [("-1", None, ("milk", "gin"), True)]),
    ]
)


def test_columns_and_back() -> None:
    assert dict(COLUMNS.histories(np.arange(3))) == {
        "ann": [Basket("a", 5, ("milk", "tea")), Basket("7", None, ("tea",))],
        "2": [Basket("a", 1, ("gin",))],
        "cat": [Basket("-1", None, ("milk", "gin"))],
    }
    assert [ends.tolist() for ends in COLUMNS.ends_by_user()] == [[2, 3, 4], [3, 4, 6]]


def test_a_selection_has_no_items_of_others() -> None:
    selected = COLUMNS.select(np.array([1, 2]))
    assert selected.users == ["2", "cat"]
    assert sorted(map(str, selected.items)) == ["gin", "milk"]
    assert list(selected.histories(np.arange(2))) == list(COLUMNS.histories(np.array([1, 2])))


def test_ids_of_other_types() -> None:
    """Baskets of the same time are sorted by their new ids; untimed ones and groups stay where they are."""
    baskets = [
        (9, 5, (1,), True),
        (10, 5, (2, 3), False),
        (8, None, (4,), True),
        (100, 5, (5,), False),
        (1, 6, (1,), True),
    ]
    columns = BasketColumns.of([(7, baskets), (6, [(2, None, (9,), True)])]).in_types(IdTypes(None, str, str))
    assert dict(columns.histories(np.arange(2))) == {
        7: [
            Basket("10", 5, ("2", "3")),
            Basket("100", 5, ("5",)),
            Basket("8", None, ("4",)),
            Basket("9", 5, ("1",)),
            Basket("1", 6, ("1",)),
        ],
        6: [Basket("2", None, ("9",))],
    }
    assert columns.opens.tolist() == [1, 0, 1, 0, 1, 1]
    back = columns.in_types(IdTypes(str, int, None))
    assert back.users == ["7", "6"]
    assert back.basket_ids() == [9, 10, 8, 100, 1, 2]


def test_an_id_that_spells_none_of_the_type() -> None:
    for types, kind in ((IdTypes(int, None, None), "user"), (IdTypes(None, int, None), "basket")):
        with pytest.raises(InvalidIdError, match=f"^{kind} id 'a"):
            COLUMNS.in_types(types)


def test_no_users() -> None:
    assert list(BasketColumns.of([]).histories(np.arange(0))) == []
