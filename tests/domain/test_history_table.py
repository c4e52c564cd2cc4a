"""Histories as an Arrow table: there and back, in chunks, with ids of both types and tombstones."""

import numpy as np
import pyarrow as pa
import pytest

from unbasket import Basket
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.history_table import history_schema, to_columns, to_table
from unbasket.domain.ids import Id, IdTypes

TEXTS, NUMBERS = IdTypes(str, str, str), IdTypes(int, int, int)
SUPPRESSED: dict[Id, set[Id]] = {"ann": {"tea", "gin"}, "eve": {"tea"}}
COLUMNS = BasketColumns.of(
    [
        ("ann", [("a", 5, ("milk", "tea"), True), ("7", None, ("tea",), False)]),
        ("2", [("a", -1, ("gin",), True)]),
    ]
)


def test_a_row_per_user() -> None:
    assert to_table(COLUMNS, SUPPRESSED, TEXTS).to_pylist() == [
        {
            "user": "ann",
            "baskets": [
                {"basket": "a", "time": 5, "opens": True, "items": ["milk", "tea"]},
                {"basket": "7", "time": None, "opens": False, "items": ["tea"]},
            ],
            "suppressed": ["gin", "tea"],
        },
        {"user": "2", "baskets": [{"basket": "a", "time": -1, "opens": True, "items": ["gin"]}], "suppressed": []},
    ]


def test_there_and_back_in_chunks() -> None:
    """A slice of a table has other rows before it, and a table from Spark has several chunks."""
    whole = to_table(COLUMNS, SUPPRESSED, TEXTS)
    table = pa.concat_tables([whole.slice(1), whole.slice(0, 1)])
    columns, suppressed = to_columns(table)
    assert dict(columns.histories(np.arange(2))) == dict(COLUMNS.histories(np.arange(2)))
    assert columns.users == ["2", "ann"]
    assert columns.opens.tolist() == [1, 1, 0]
    assert suppressed == {"ann": {"gin", "tea"}}
    assert to_table(columns, suppressed, TEXTS) == table


def test_numbers() -> None:
    table = to_table(BasketColumns.of([(7, [(2**62, 5, (1, 2), True), (-3, None, (9,), False)])]), {7: {11}}, NUMBERS)
    columns, suppressed = to_columns(table)
    assert list(columns.histories(np.arange(1))) == [(7, [Basket(2**62, 5, (1, 2)), Basket(-3, None, (9,))])]
    assert suppressed == {7: {11}}


@pytest.mark.parametrize("types", [TEXTS, NUMBERS])
def test_tombstones_have_no_baskets(types: IdTypes) -> None:
    user = "bob" if types is TEXTS else 7
    table = to_table(BasketColumns.of([])._replace(users=[user]), {}, types)
    assert table.schema == history_schema(types)
    assert table.to_pylist() == [{"user": user, "baskets": [], "suppressed": []}]
    assert to_columns(table.slice(0, 0))[0].users == []
