"""Rows of baskets and columns of baskets, from one to the other. See also `test_laws.py` and `test_durable.py`."""

from collections.abc import Iterable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.store.test_row_codec import BASKET_LISTS, BASKETS

from unbasket.core.codec import ColumnRowWriter, RowReader
from unbasket.domain.ids import Id
from unbasket.store.basket_table import columns_of
from unbasket.store.reader import decode_baskets, sorted_columns
from unbasket.store.row_codec import STEP, TABLE_SEEDS, BasketRow, decode_basket, encode_basket, with_checksum


@given(BASKET_LISTS)
def test_rows_become_columns_one_by_one_and_in_bulk(baskets: list[BasketRow]) -> None:
    payloads = [encode_basket(basket) for basket in baskets]
    assert [decode_basket(payload) for payload in payloads] == baskets
    reader = RowReader(TABLE_SEEDS["baskets"], STEP, 0)
    decode_baskets(
        reader, [(row, with_checksum("baskets", row, payload)[0]) for row, payload in enumerate(payloads, 1)]
    )
    orders, rows = sorted_columns(reader)
    expected, expected_rows = columns_of(enumerate(baskets, 1))
    assert [*orders.histories(np.arange(len(orders.users)))] == [*expected.histories(np.arange(len(orders.users)))]
    assert orders.opens.tolist() == expected.opens.tolist()
    assert rows.tolist() == expected_rows.tolist()


@given(BASKET_LISTS)
def test_a_bulk_of_baskets_is_written_as_one_by_one(baskets: list[BasketRow]) -> None:
    orders, rows = columns_of(enumerate((replace(basket, shift=0) for basket in baskets), 1))
    key = bytes(range(32))
    written = ColumnRowWriter(orders, TABLE_SEEDS["baskets"], key).take(1, 10)
    alone = [encode_basket(replace(baskets[row - 1], shift=0)) for row in rows]
    assert written == [(row, with_checksum("baskets", row, b, key)[0]) for row, b in enumerate(alone, 1)]


def has_both_types(ids: Iterable[Id]) -> bool:
    return len({type(name) for name in ids}) == 2


@given(st.lists(BASKETS, max_size=3))
def test_both_types_of_a_kind_are_noticed(baskets: list[BasketRow]) -> None:
    reader = RowReader(TABLE_SEEDS["baskets"], STEP, 0)
    rows = [with_checksum("baskets", row, encode_basket(basket))[0] for row, basket in enumerate(baskets, 1)]
    decode_baskets(reader, list(enumerate(rows, 1)))
    kinds = ([b.user for b in baskets], [b.basket for b in baskets], [item for b in baskets for item in b.items])
    assert reader.mixed == any(map(has_both_types, kinds))
    assert reader.count == len(baskets)
