"""Purchases grouped into baskets, against a naive grouping; values encoded by a table."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.codec import arrange, encode, rows_by_user, tick

USERS, BASKETS, ITEMS = 4, 4, 5


class Row(NamedTuple):
    user: int
    basket: int
    item: int


class Arranged(NamedTuple):
    owner: int
    basket: int
    first_row: int
    items: list[int]


def run(rows: list[Row], times: list[int]) -> tuple[int, list[Arranged]]:
    user, basket, item = np.array(rows, np.uint32).reshape(-1, 3).T.copy()
    by_user = np.empty(len(rows), np.uint32)
    ends = rows_by_user(user, len(set(user)), by_user)
    moments = np.array([time + 2 for time in times], np.uint32)  # none is below -2
    owners, first_rows, sizes, purchases, conflict = arrange(by_user, ends, basket, item, moments, ITEMS)
    assert sizes.sum() == len(purchases)
    bought = np.split(purchases, np.cumsum(sizes))[:-1]
    return (
        conflict,
        [
            Arranged(owner, rows[first].basket, first, sorted(items.tolist()))  # items are unordered
            for owner, first, items in zip(owners.tolist(), first_rows.tolist(), bought, strict=True)
        ],
    )


def naive(rows: list[Row], times: list[int]) -> list[Arranged]:
    baskets: dict[tuple[int, int], list[int]] = {}
    for number, row in enumerate(rows):
        baskets.setdefault((row.user, row.basket), []).append(number)

    def position(key: tuple[int, int]) -> tuple[int, int, int]:
        first = baskets[key][0]
        return key[0], times[first] if times else first, key[1]

    return [
        Arranged(*key, baskets[key][0], sorted({rows[number].item for number in baskets[key]}))
        for key in sorted(baskets, key=position)
    ]


def dense(rows: list[Row]) -> list[Row]:
    """Renumber users from 0 without a gap: each user has a row."""
    numbers = {user: number for number, user in enumerate(sorted({row.user for row in rows}))}
    return [row._replace(user=numbers[row.user]) for row in rows]


tables = st.lists(
    st.builds(Row, st.integers(0, USERS - 1), st.integers(0, BASKETS - 1), st.integers(0, ITEMS - 1)), max_size=40
).map(dense)


@settings(max_examples=300, deadline=None)
@given(tables)
def test_without_times_baskets_are_sorted_by_first_row(rows: list[Row]) -> None:
    assert run(rows, []) == (-1, naive(rows, []))


@settings(max_examples=300, deadline=None)
@given(tables, st.lists(st.integers(-2, 2), min_size=USERS * BASKETS, max_size=USERS * BASKETS))
def test_with_times_baskets_are_sorted_by_time_and_code(rows: list[Row], moments: list[int]) -> None:
    times = [moments[row.user * BASKETS + row.basket] for row in rows]
    if rows:
        assert run(rows, times) == (-1, naive(rows, times))


@settings(max_examples=300, deadline=None)
@given(tables.filter(bool), st.data())
def test_two_times_of_a_basket_are_a_conflict(rows: list[Row], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(0, 1), min_size=len(rows), max_size=len(rows)))
    moments: dict[tuple[int, int], set[int]] = {}
    for row, time in zip(rows, times, strict=True):
        moments.setdefault((row.user, row.basket), set()).add(time)
    conflict, _ = run(rows, times)
    if max(map(len, moments.values())) == 1:
        assert conflict == -1
    else:
        assert len(moments[rows[conflict][:2]]) == 2


def test_a_conflict_names_a_row_of_the_basket() -> None:
    rows = [Row(0, 0, 1), Row(1, 2, 4), Row(1, 2, 0), Row(1, 2, 3)]
    assert run(rows, [5, 6, 6, 7])[0] in (1, 2, 3)
    assert run(rows, [5, 6, 6, 6])[0] == -1


def test_repeated_purchases_count_once() -> None:
    rows = [Row(0, 1, 3), Row(0, 1, 3), Row(0, 0, 3), Row(0, 1, 2), Row(0, 1, 3)]
    assert run(rows, []) == (-1, [Arranged(0, 1, 0, [2, 3]), Arranged(0, 0, 2, [3])])


def test_the_last_item_of_a_basket_may_be_the_first_of_the_next() -> None:
    assert run([Row(0, 0, 3), Row(0, 1, 3)], []) == (-1, [Arranged(0, 0, 0, [3]), Arranged(0, 1, 1, [3])])


def test_no_rows() -> None:
    assert run([], []) == (-1, [])


@pytest.mark.parametrize("users", [1, 3, 10])
def test_rows_by_user_keep_their_order(users: int) -> None:
    owners = np.array([(i * 7) % users for i in range(50)], np.uint32)
    rows = np.empty(50, np.uint32)
    ends = rows_by_user(owners, users, rows)
    assert rows.tolist() == sorted(range(50), key=lambda row: owners[row])
    assert ends.tolist() == np.cumsum(np.bincount(owners, minlength=users)).tolist()


def frozen(values: list[int]) -> Int64s:
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return array


def test_tick_flags_the_values_in_the_table() -> None:
    table = np.zeros(6, np.uint32)
    tick(frozen([-2, 3, -2]), -2, table)
    tick(frozen([0]), -2, table)
    assert table.tolist() == [1, 0, 1, 0, 0, 1]


def test_encode_looks_values_up() -> None:
    table: Codes = np.array([7, 0, 8, 0, 0, 9], np.uint32)
    codes = np.empty(4, np.uint32)
    encode(frozen([3, -2, 0, 3]), -2, table, codes)
    assert codes.tolist() == [9, 7, 8, 9]
