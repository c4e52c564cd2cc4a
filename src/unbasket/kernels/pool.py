"""Ragged rows in one flat, growable array: the container of histories, vectors and postings alike.

A row is a run of records, a record a few numbers of one type (a row of `data`). Rows grow at the end of the pool;
the place they leave is wiped at once and won back when the pool is next laid out anew. Whatever is not a live
record is zero, always: forgotten records leave nothing behind.
"""

from typing import Any

import numpy as np
from numba import float64, int64, types, uint32
from numba.experimental import structref

from unbasket.kernels.jit import Codes, Floats, Int64s, Struct, jit, new, whole

Numbers = Codes | Int64s | Floats

START, LENGTH, CAPACITY = 0, 1, 2

# Numba compiles a function once more for every literal number it is called with; these are no literals.
NONE, SINGLE = whole(0), whole(1)


@structref.register
class PoolType(types.StructRef):
    """Numba's side of `Pool`."""


class Pool(Struct):
    """Rows of records. `rows` holds start, length and capacity of each; `used` is the end of the last row."""

    rows: Int64s
    data: Any
    used: int


def _pool_of(data: object) -> object:
    return PoolType([("rows", int64[:, ::1]), ("data", data), ("used", int64)])  # type: ignore[no-untyped-call]


CODE_POOL = _pool_of(uint32[:, ::1])
INT64_POOL = _pool_of(int64[:, ::1])
FLOAT_POOL = _pool_of(float64[:, ::1])


@jit
def code_pool(width: int) -> Pool:
    """An empty pool of codes."""
    pool = new(CODE_POOL)
    pool.rows = np.zeros((0, 3), np.int64)
    pool.data = np.zeros((0, width), np.uint32)
    pool.used = 0
    return pool


@jit
def int64_pool(width: int) -> Pool:
    """An empty pool of int64 records."""
    pool = new(INT64_POOL)
    pool.rows = np.zeros((0, 3), np.int64)
    pool.data = np.zeros((0, width), np.int64)
    pool.used = 0
    return pool


@jit
def float_pool(width: int) -> Pool:
    """An empty pool of float64 records."""
    pool = new(FLOAT_POOL)
    pool.rows = np.zeros((0, 3), np.int64)
    pool.data = np.zeros((0, width), np.float64)
    pool.used = 0
    return pool


@jit
def copy(source: Numbers, start: int, target: Numbers, place: int, count: int) -> None:
    """Copy records to a place that does not overlap their own."""
    for i in range(count):
        for j in range(source.shape[1]):
            target[place + i, j] = source[start + i, j]


@jit
def wipe(data: Numbers, start: int, count: int) -> None:
    """Zero records."""
    for i in range(start, start + count):
        for j in range(data.shape[1]):
            data[i, j] = 0


@jit
def add_rows(pool: Pool, count: int) -> None:
    """Make sure that there are at least `count` rows; new ones are empty."""
    if count > len(pool.rows):
        rows = np.zeros((count + count // 4, 3), np.int64)
        copy(pool.rows, NONE, rows, NONE, len(pool.rows))
        wipe(pool.rows, NONE, len(pool.rows))
        pool.rows = rows


@jit
def grown(array: Any, length: int) -> Any:
    """The array if it is long enough; else a longer one with the same start, and the old one is wiped."""
    if length <= len(array):
        return array
    longer = np.zeros(length + length // 4, array.dtype)
    for i in range(len(array)):
        longer[i] = array[i]
        array[i] = 0
    return longer


@jit
def _roomy(length: int) -> int:
    return length + length // 4 + 1


@jit
def reserve(pool: Pool, row: int, length: int) -> None:
    """Give a row capacity for `length` records: exactly that much at first, then with room to grow."""
    capacity = pool.rows[row, CAPACITY]
    if length <= capacity:
        return
    if capacity > 0:
        length = _roomy(length)
    make_room(pool, length)
    rows, data = pool.rows, pool.data
    start, count = rows[row, START], rows[row, LENGTH]
    copy(data, start, data, pool.used, count)
    wipe(data, start, count)
    rows[row, START] = pool.used
    rows[row, CAPACITY] = length
    pool.used += length


@jit
def make_room(pool: Pool, records: int) -> None:
    """Make sure that so many records can be added without laying the pool out anew."""
    length = new_length(pool, records)
    if length > 0:
        lay_out(pool, np.zeros((length, pool.data.shape[1]), pool.data.dtype))


@jit
def new_length(pool: Pool, records: int) -> int:
    """How long an array the pool needs for so many more records, with a quarter to spare; 0 if it has the room."""
    if pool.used + records <= len(pool.data):
        return 0
    live = 0
    for row in range(len(pool.rows)):
        live += _kept_capacity(pool.rows, row)
    return live + live // 4 + records


@jit
def _kept_capacity(rows: Int64s, row: int) -> int:
    return min(rows[row, CAPACITY], _roomy(rows[row, LENGTH]))


@jit
def lay_out(pool: Pool, new: Numbers) -> None:
    """Move all rows, tightly packed, into an array of zeros of the `new_length`, if that is not 0; wipe the old one."""
    if len(new) == 0:
        return
    rows, old = pool.rows, pool.data
    used = NONE
    for row in range(len(rows)):
        rows[row, CAPACITY] = _kept_capacity(rows, row)
        copy(old, rows[row, START], new, used, rows[row, LENGTH])
        rows[row, START] = used
        used += rows[row, CAPACITY]
    wipe(old, NONE, len(old))
    pool.data = new
    pool.used = used


@jit
def open_gap(pool: Pool, row: int, position: int, count: int) -> int:
    """Make room for `count` records before `position` of a row; returns where in `data` the gap starts."""
    length = pool.rows[row, LENGTH]
    reserve(pool, row, length + count)
    data, start = pool.data, pool.rows[row, START]
    for i in range(start + length - 1, start + position - 1, -1):
        for j in range(data.shape[1]):
            data[i + count, j] = data[i, j]
    pool.rows[row, LENGTH] = length + count
    return start + position


@jit
def close_gap(pool: Pool, row: int, position: int, count: int) -> None:
    """Remove `count` records from `position` of a row on."""
    data, start, length = pool.data, pool.rows[row, START], pool.rows[row, LENGTH]
    for i in range(start + position, start + length - count):
        for j in range(data.shape[1]):
            data[i, j] = data[i + count, j]
    wipe(data, start + length - count, count)
    _set_length(pool, row, length - count)


@jit
def _set_length(pool: Pool, row: int, length: int) -> None:
    """Note a row's new length; an empty row gives its place back."""
    pool.rows[row, LENGTH] = length
    if length == 0:
        pool.rows[row, START] = 0
        pool.rows[row, CAPACITY] = 0


@jit
def append(pool: Pool, row: int) -> int:
    """Add a record at the end of a row; returns where in `data` it is."""
    rows = pool.rows
    length = rows[row, LENGTH]
    if length == rows[row, CAPACITY]:
        reserve(pool, row, length + 1)
    rows[row, LENGTH] = length + 1
    return rows[row, START] + length


@jit
def pop(pool: Pool, row: int) -> None:
    """Remove the last record of a row."""
    length = pool.rows[row, LENGTH] - 1
    wipe(pool.data, pool.rows[row, START] + length, SINGLE)
    _set_length(pool, row, length)


@jit
def clear_row(pool: Pool, row: int) -> None:
    """Remove all records of a row."""
    wipe(pool.data, pool.rows[row, START], pool.rows[row, LENGTH])
    _set_length(pool, row, NONE)
