"""The pool against a plain list of lists; and that whatever is not a live record is zero, always."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar, cast

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.kernels.jit import Int64s
from unbasket.kernels.pool import (
    CAPACITY,
    LENGTH,
    START,
    Pool,
    add_rows,
    append,
    clear_row,
    close_gap,
    code_pool,
    float_pool,
    int64_pool,
    lay_out,
    make_room,
    new_length,
    open_gap,
    pop,
    reserve,
)

Function = TypeVar("Function", bound=Callable[..., Any])
compiled: Callable[[Function], Function] = cast("Any", numba.njit)

ROWS, WIDTH = 5, 2
APPEND, POP, OPEN, CLOSE, CLEAR, RESERVE, ROOM, MORE_ROWS = range(8)

Operation = tuple[int, int, int, int]  # which, row, position, count


@compiled
def write(pool: Pool, place: int, count: int, value: int) -> None:
    for i in range(count):
        pool.data[place + i, 0] = value + i
        pool.data[place + i, 1] = 2 * (value + i)


@compiled
def apply(pool: Pool, which: int, row: int, position: int, count: int, value: int) -> None:
    if which == APPEND:
        write(pool, append(pool, row), 1, value)
    elif which == POP:
        pop(pool, row)
    elif which == OPEN:
        write(pool, open_gap(pool, row, position, count), count, value)
    elif which == CLOSE:
        close_gap(pool, row, position, count)
    elif which == CLEAR:
        clear_row(pool, row)
    elif which == RESERVE:
        reserve(pool, row, count)
    elif which == ROOM:
        make_room(pool, count)
    elif which == MORE_ROWS:
        add_rows(pool, count)


@compiled
def live_records(pool: Pool) -> Any:
    """Which records belong to a row; a record of two rows counts twice."""
    live = np.zeros(len(pool.data), np.int64)
    for row in range(len(pool.rows)):
        for i in range(pool.rows[row, LENGTH]):
            live[pool.rows[row, START] + i] += 1
    return live


@compiled
def faults(pool: Pool, before: Any) -> int:
    """How many records are not zero though they are no live ones, also in the array that the pool has left."""
    live = live_records(pool)
    count = 0
    for i in range(len(pool.data)):
        count += live[i] > 1 or (live[i] == 0 and pool.data[i].any())
    if before.ctypes.data != pool.data.ctypes.data:
        count += before.any()
    return count


@compiled
def run(pool: Pool, operations: Int64s) -> tuple[Any, Any, int, int]:
    """Do operations, each with a value no other has; returns rows, data, the end and the number of faults."""
    add_rows(pool, ROWS)
    wrong = 0
    for i in range(len(operations)):
        before = pool.data
        which, row, position, count = operations[i]
        apply(pool, which, row, position, count, 1000 * (i + 1))
        wrong += faults(pool, before)
    return pool.rows.copy(), pool.data.copy(), pool.used, wrong


@compiled
def run_codes(operations: Int64s) -> tuple[Any, Any, int, int]:
    return run(code_pool(WIDTH), operations)


@compiled
def run_int64s(operations: Int64s) -> tuple[Any, Any, int, int]:
    return run(int64_pool(WIDTH), operations)


@compiled
def run_floats(operations: Int64s) -> tuple[Any, Any, int, int]:
    return run(float_pool(WIDTH), operations)


RUNS = [run_codes, run_int64s, run_floats]


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


def as_array(operations: list[Operation]) -> Int64s:
    return np.array(operations, np.int64).reshape(-1, 4)


@pytest.mark.parametrize("engine", RUNS, ids=["codes", "int64s", "floats"])
@settings(max_examples=150, deadline=None)
@given(operations=sequences())
def test_rows_are_as_lists_and_the_rest_is_zero(
    engine: Callable[[Int64s], tuple[Any, Any, int, int]], operations: list[Operation]
) -> None:
    rows, data, used, wrong = engine(as_array(operations))
    assert wrong == 0
    for row, expected in enumerate(run_lists(operations)):
        start, length, capacity = rows[row].tolist()
        assert data[start : start + length].tolist() == [[value, 2 * value] for value in expected]
        assert length <= capacity
        assert start + capacity <= used <= len(data)
    assert not rows[ROWS:, [LENGTH, CAPACITY]].any()
    spans = sorted((start, start + capacity) for start, _, capacity in rows.tolist() if capacity)
    assert all(end <= following for (_, end), (following, _) in pairwise(spans))


@pytest.mark.parametrize("engine", RUNS, ids=["codes", "int64s", "floats"])
def test_cleared_rows_give_their_place_back(engine: Callable[[Int64s], tuple[Any, Any, int, int]]) -> None:
    filling = [(OPEN, row, 0, 6) for row in range(ROWS)]
    clearing = [(CLEAR, row, 0, 0) for row in range(ROWS)]
    rows, data, _, wrong = engine(as_array([*filling, *clearing]))
    assert wrong == 0
    assert not rows[:, [LENGTH, CAPACITY]].any()
    assert not data.any()


def test_a_pool_does_not_grow_with_the_number_of_changes() -> None:
    change = [(OPEN, 0, 0, 5), (APPEND, 1, 0, 0), (CLEAR, 0, 0, 0), (POP, 1, 0, 0)]
    _, data, _, wrong = run_codes(as_array(change * 500))
    assert wrong == 0
    assert len(data) < 30


@compiled
def moved(length: int) -> tuple[int, bool, Any]:
    """Move a pool with a full row into a new array: how long it had to be, whether it is the data now, and these."""
    pool = code_pool(WIDTH)
    add_rows(pool, ROWS)
    write(pool, open_gap(pool, 1, 0, 4), 4, 1)
    needed, new = new_length(pool, length), np.zeros((new_length(pool, length), WIDTH), np.uint32)
    lay_out(pool, new)
    return needed, pool.data.ctypes.data == new.ctypes.data, pool.data[: pool.rows[1, LENGTH], 0].copy()


def test_a_pool_moves_only_for_want_of_room() -> None:
    needed, is_new, values = moved(10)
    assert (needed, is_new, values.tolist()) == (4 + 1 + 10, True, [1, 2, 3, 4])
    needed, is_new, values = moved(0)
    assert (needed, is_new, values.tolist()) == (0, False, [1, 2, 3, 4])


def test_a_row_is_reserved_exactly_at_first_and_with_room_to_grow_later() -> None:
    rows, _, _, _ = run_codes(as_array([(RESERVE, 0, 0, 8)]))
    assert rows[0].tolist() == [0, 0, 8]
    rows, _, _, _ = run_codes(as_array([(RESERVE, 0, 0, 8), (OPEN, 0, 0, 9)]))
    assert rows[0, LENGTH] == 9
    assert rows[0, CAPACITY] > 9


def test_appending_is_amortised() -> None:
    """Rows that grow side by side move now and then only: the array stays a small multiple of what it holds."""
    rows, data, _, wrong = run_codes(as_array([(APPEND, i % ROWS, 0, 0) for i in range(1000)]))
    assert wrong == 0
    assert rows[:ROWS, LENGTH].tolist() == [200] * ROWS
    assert len(data) < 2000


def test_there_is_room_after_it_was_made() -> None:
    rows, data, used, wrong = run_codes(as_array([(APPEND, 0, 0, 0), (ROOM, 0, 0, 50)]))
    assert wrong == 0
    assert len(data) - used >= 50
    assert data[rows[0, START], 0] == 1000
