"""The pool against a plain list of lists; and that whatever is not a live record is zero, always."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.core import views
from unbasket.core.rows import Rows

ROWS = 5
APPEND, POP, OPEN, CLOSE, CLEAR, RESERVE, ROOM, MORE_ROWS = range(8)

Operation = tuple[int, int, int, int]  # which, row, position, count

# Records of several widths: a byte, a code, and three numbers that fill no power of two.
RECORDS = [
    np.dtype([("a", np.uint32)]),
    np.dtype([("a", np.int64), ("b", np.int64)]),
    np.dtype([("a", np.uint32), ("b", np.uint32), ("c", np.uint32)]),
    np.dtype([("a", np.float64), ("b", np.int32)]),
]


def write(pool: Rows, record: np.dtype[Any], place: int, count: int, value: int) -> None:
    data = views.records(pool, record)
    for number, name in enumerate(record.names or (), 1):
        data[name][place : place + count] = number * np.arange(value, value + count)


def apply(pool: Rows, record: np.dtype[Any], operation: Operation, value: int) -> None:
    which, row, position, count = operation
    if which == APPEND:
        write(pool, record, pool.append(row), 1, value)
    elif which == POP:
        pool.pop(row)
    elif which == OPEN:
        write(pool, record, pool.open_gap(row, position, count), count, value)
    elif which == CLOSE:
        pool.close_gap(row, position, count)
    elif which == CLEAR:
        pool.clear_row(row)
    elif which == RESERVE:
        pool.reserve(row, count)
    elif which == ROOM:
        pool.make_room(count)
    elif which == MORE_ROWS:
        pool.add_rows(count)


def check_that_the_rest_is_zero(pool: Rows) -> None:
    """Every record belongs to one row at most, and is zero if it belongs to none."""
    data = views.memory(pool)
    live = np.zeros(pool.size, np.int64)
    for start, length, _ in views.rows(pool).tolist():
        live[start : start + length] += 1
    assert live.max(initial=0) <= 1
    assert not data[live == 0].any()


def run(operations: list[Operation], record: np.dtype[Any] = RECORDS[0]) -> Rows:
    """Do operations, each with a value no other has."""
    pool = Rows(record.itemsize)
    pool.add_rows(ROWS)
    for number, operation in enumerate(operations, 1):
        apply(pool, record, operation, 1000 * number)
        check_that_the_rest_is_zero(pool)
    return pool


def run_lists(operations: list[Operation]) -> list[list[int]]:
    """The model."""
    rows: list[list[int]] = [[] for _ in range(ROWS)]
    for i, (which, row, position, count) in enumerate(operations, 1):
        match which:
            case 0:
                rows[row].append(1000 * i)
            case 1:
                rows[row].pop()
            case 2:
                rows[row][position:position] = [1000 * i + j for j in range(count)]
            case 3:
                del rows[row][position : position + count]
            case 4:
                rows[row].clear()
    return rows


@st.composite
def sequences(draw: st.DrawFn) -> list[Operation]:
    operations: list[Operation] = []
    lengths = [0] * ROWS
    for _ in range(draw(st.integers(0, 40))):
        row = draw(st.integers(0, ROWS - 1))
        which = draw(st.sampled_from([APPEND, APPEND, OPEN, POP, CLOSE, CLEAR, RESERVE, ROOM, MORE_ROWS]))
        position = draw(st.integers(0, lengths[row]))
        count = draw(st.integers(0, 6))
        if which == POP and not lengths[row]:
            continue
        if which == CLOSE:
            count = min(count, lengths[row] - position)
        operations.append((which, row, position, count))
        lengths[row] = len(run_lists(operations)[row])
    return operations


@pytest.mark.parametrize("record", RECORDS, ids=str)
@settings(max_examples=150, deadline=None)
@given(operations=sequences())
def test_rows_are_as_lists_and_the_rest_is_zero(record: np.dtype[Any], operations: list[Operation]) -> None:
    pool = run(operations, record)
    data, rows = views.records(pool, record), views.rows(pool)
    for row, expected in enumerate(run_lists(operations)):
        start, length, capacity = rows[row].tolist()
        for number, name in enumerate(record.names or (), 1):
            assert data[name][start : start + length].tolist() == [number * value for value in expected]
        assert length <= capacity
        assert start + capacity <= pool.used <= pool.size
    assert not rows["length"][ROWS:].any()
    assert not rows["capacity"][ROWS:].any()
    spans = sorted((start, start + capacity) for start, _, capacity in rows.tolist() if capacity)
    assert all(end <= following for (_, end), (following, _) in pairwise(spans))


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_cleared_rows_give_their_place_back(record: np.dtype[Any]) -> None:
    filling = [(OPEN, row, 0, 6) for row in range(ROWS)]
    clearing = [(CLEAR, row, 0, 0) for row in range(ROWS)]
    pool = run([*filling, *clearing], record)
    assert not views.rows(pool)["length"].any()
    assert not views.rows(pool)["capacity"].any()
    assert not views.memory(pool).any()


def test_a_pool_does_not_grow_with_the_number_of_changes() -> None:
    change = [(OPEN, 0, 0, 5), (APPEND, 1, 0, 0), (CLEAR, 0, 0, 0), (POP, 1, 0, 0)]
    assert run(change * 500).size < 30


def test_a_pool_moves_only_for_want_of_room() -> None:
    pool = run([(OPEN, 1, 0, 4)])
    pool.make_room(0)
    assert pool.size == 4
    pool.make_room(10)
    assert pool.size == 4 + 1 + 10
    start, length, _ = views.rows(pool)[1].tolist()
    assert views.records(pool, RECORDS[0])["a"][start : start + length].tolist() == [1000, 1001, 1002, 1003]


def test_a_row_is_reserved_exactly_at_first_and_with_room_to_grow_later() -> None:
    pool = run([(RESERVE, 0, 0, 8)])
    assert views.rows(pool)[0].tolist() == (0, 0, 8)
    write(pool, RECORDS[0], pool.open_gap(0, 0, 9), 9, 1)
    assert views.rows(pool)["length"][0] == 9
    assert views.rows(pool)["capacity"][0] > 9


def test_appending_is_amortised() -> None:
    """Rows that grow side by side move now and then only: the array stays a small multiple of what it holds."""
    pool = run([(APPEND, i % ROWS, 0, 0) for i in range(1000)])
    assert views.rows(pool)["length"][:ROWS].tolist() == [200] * ROWS
    assert pool.size < 2000


def test_there_is_room_after_it_was_made() -> None:
    pool = run([(APPEND, 0, 0, 0), (ROOM, 0, 0, 50)])
    assert pool.size - pool.used >= 50
    assert views.records(pool, RECORDS[0])["a"][views.rows(pool)["start"][0]] == 1000


def test_want_of_memory_is_an_error_and_changes_nothing() -> None:
    pool = run([(OPEN, 1, 0, 4)])
    before = views.rows(pool).tolist()
    with pytest.raises(MemoryError, match="no memory"):
        pool.make_room(2**58)
    assert (views.rows(pool).tolist(), pool.size) == (before, 4)
