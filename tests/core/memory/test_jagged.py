"""Jagged arrays against plain lists: records are equal, all other bytes are zero, memory is bounded."""

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.core.check import testing
from unbasket.core.memory import JaggedArray

ROWS = 5
APPEND, POP, OPEN, CLOSE, CLEAR, RESERVE, TRIM, MORE_ROWS = range(8)
SLAB, LARGEST, LARGE = 2**16, 2**13, 2**22  # bytes: see slab.pxd and buffers.h

Operation = tuple[int, int, int, int]  # kind, row, position, count

# Records of several widths: a power of two or not, with padding, and so wide that few fit into a block.
RECORDS = [
    np.dtype([("a", np.uint32)]),
    np.dtype([("a", np.int64), ("b", np.int64)]),
    np.dtype([("a", np.uint32), ("b", np.uint32), ("c", np.uint32)]),
    np.dtype([("a", np.float64), ("b", np.int32)]),
    np.dtype([("a", np.float64), ("rest", np.uint8, LARGEST // 3)]),
]


def write(rows: JaggedArray, row: int, record: np.dtype[Any], position: int, count: int, value: int) -> None:
    """Fill some records with nonzero bytes, and their first field with values from `value` on."""
    data = testing.row(rows, row, record)[position : position + count]
    data.view(np.uint8)[:] = 7
    data["a"] = np.arange(value, value + count)


def apply(rows: JaggedArray, record: np.dtype[Any], operation: Operation, value: int) -> None:
    which, row, position, count = operation
    if which == APPEND:
        testing.append(rows, row)
        write(rows, row, record, len(testing.row(rows, row, record)) - 1, 1, value)
    elif which == POP:
        rows.pop(row)
    elif which == OPEN:
        testing.open_gap(rows, row, position, count)
        write(rows, row, record, position, count, value)
    elif which == CLOSE:
        rows.close_gap(row, position, count)
    elif which == CLEAR:
        rows.clear_row(row)
    elif which == RESERVE:
        rows.reserve(row, count)
    elif which == TRIM:
        rows.trim(row)
    elif which == MORE_ROWS:
        rows.add_rows(count)


def run(operations: list[Operation], record: np.dtype[Any] = RECORDS[0]) -> JaggedArray:
    """Apply operations, each with a value of its own; check after each that it leaves no residue."""
    rows = JaggedArray(record.itemsize)
    rows.add_rows(ROWS)
    for number, operation in enumerate(operations, 1):
        apply(rows, record, operation, 1000 * number)
        assert rows.residue() == 0
    return rows


def run_lists(operations: list[Operation]) -> list[list[int]]:
    """Apply operations to plain lists."""
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
        which = draw(st.sampled_from([APPEND, APPEND, OPEN, POP, CLOSE, CLEAR, RESERVE, TRIM, MORE_ROWS]))
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
def test_rows_equal_lists_and_the_rest_is_zero(record: np.dtype[Any], operations: list[Operation]) -> None:
    rows = run(operations, record)
    headers = testing.rows(rows)
    for row, expected in enumerate(run_lists(operations)):
        data = testing.row(rows, row, record)
        assert data["a"].tolist() == expected
        if len(data) and record.itemsize > data["a"].itemsize:
            assert data.view(np.uint8).reshape(len(data), -1)[:, -1].min() != 0
        assert headers["length"][row] <= headers["capacity"][row]
    assert not headers["length"][ROWS:].any()
    assert not headers["capacity"][ROWS:].any()
    spans = sorted((first, first + capacity * record.itemsize) for first, _, capacity in headers.tolist() if capacity)
    assert all(end <= following for (_, end), (following, _) in pairwise(spans))


@pytest.mark.parametrize("record", RECORDS, ids=str)
def test_cleared_rows_free_their_memory(record: np.dtype[Any]) -> None:
    filling = [(OPEN, row, 0, 6) for row in range(ROWS)]
    clearing = [(CLEAR, row, 0, 0) for row in range(ROWS)]
    rows = run([*filling, *clearing], record)
    assert not any(testing.rows(rows).view(np.uint8))
    assert (rows.blocks.used, rows.blocks.slab_count - rows.blocks.idle_count) == (0, 0)


def test_residue_is_found_everywhere() -> None:
    rows = run([(OPEN, 0, 0, 9), (OPEN, 1, 0, 9), (CLEAR, 1, 0, 0), (OPEN, 2, 0, 9), (RESERVE, 2, 0, 10)])
    for memory in (testing.free_block(rows, 36), testing.spare(rows, 2)):
        memory[3] = 1
        assert rows.residue() == 1
        memory[3] = 0
    testing.rows(rows)[0] = testing.rows(rows)[3]  # a block that no row points to
    assert rows.residue() == 1


# Memory ---------------------------------------------------------------------------------------------------------


def test_capacity_is_exact_at_first_and_has_room_to_grow_later() -> None:
    rows = run([(RESERVE, 0, 0, 100)])
    assert testing.rows(rows)["capacity"][0] in range(100, 108)
    apply(rows, RECORDS[0], (OPEN, 0, 0, 109), 1)
    assert testing.rows(rows)["capacity"][0] in range(136, 150)


def test_a_row_that_shrinks_frees_memory() -> None:
    rows = run([(OPEN, 0, 0, 1000), (CLOSE, 0, 3, 990)])
    assert testing.row(rows, 0, RECORDS[0])["a"].tolist() == [1000, 1001, 1002, *range(1993, 2000)]
    assert testing.rows(rows)["capacity"][0] < 20
    assert run([(OPEN, 0, 0, 1000), (CLOSE, 0, 3, 490)]).blocks.used == 1


@pytest.mark.parametrize("length", [LARGEST // 4 + 1, LARGE // 4 - 1, LARGE // 4, LARGE])
def test_long_rows_have_their_own_allocation(length: int) -> None:
    rows = run([(OPEN, 1, 0, length)])
    assert rows.blocks.used == 0
    for number in range(3):
        apply(rows, RECORDS[0], (OPEN, 1, 0, length // 2), number)  # grows by mremap or by a copy
    assert testing.row(rows, 1, RECORDS[0])["a"][-length:].tolist() == list(range(1000, 1000 + length))
    apply(rows, RECORDS[0], (CLOSE, 1, 0, len(testing.row(rows, 1, RECORDS[0])) - 3), 0)
    assert testing.row(rows, 1, RECORDS[0])["a"].tolist() == [length + 997, length + 998, length + 999]
    assert (rows.blocks.used, rows.residue()) == (1, 0)


def test_appending_is_amortized() -> None:
    rows, capacities = JaggedArray(4), set()
    rows.add_rows(1)
    for _ in range(100_000):
        testing.append(rows, 0)
        capacities.add(testing.rows(rows)["capacity"][0])
    assert len(capacities) < 60


def in_use(rows: JaggedArray) -> int:
    """Return the bytes of all slabs with a block in use."""
    return (rows.blocks.slab_count - rows.blocks.idle_count) * SLAB


def live(rows: JaggedArray) -> int:
    """Return the bytes of all records."""
    return int(testing.rows(rows)["length"].sum()) * rows.width


def fill(rows: JaggedArray, row: int, length: int) -> None:
    """Give an empty row `length` records at once, like a bulk load."""
    rows.reserve(row, length)
    testing.open_gap(rows, row, 0, length)


def test_a_bulk_load_wastes_little_memory() -> None:
    chance, rows = random.Random(0), JaggedArray(12)
    rows.add_rows(20_000)
    for row in range(20_000):
        fill(rows, row, chance.randint(20, 200))
    assert in_use(rows) < 1.2 * live(rows)


def test_a_stream_of_changes_needs_no_more_memory_with_time() -> None:
    """While rows grow, shrink and are replaced, the share of memory outside records does not grow."""
    chance, rows, shares = random.Random(0), JaggedArray(12), []
    rows.add_rows(10_000)
    for row in range(10_000):
        fill(rows, row, chance.randint(20, 150))
    for _ in range(8):
        for _ in range(60_000):
            row = chance.randrange(10_000)
            length = len(testing.row(rows, row, RECORDS[2]))
            if length > 150 or chance.random() < 0.01:
                rows.clear_row(row)
            elif chance.random() < 0.2 and length > 4:
                rows.close_gap(row, chance.randint(0, length - 4), 4)
            else:
                testing.open_gap(rows, row, length, chance.randint(1, 9))
        shares.append(in_use(rows) / live(rows))
    assert max(shares) < 2
    assert shares[-1] < 1.05 * shares[1]
    assert rows.residue() == 0


def test_unused_memory_is_freed() -> None:
    rows = JaggedArray(12)
    rows.add_rows(20_000)
    for row in range(20_000):
        fill(rows, row, 100)
    most = in_use(rows)
    for row in range(20_000):
        rows.clear_row(row)
    assert most > 24_000_000
    assert rows.blocks.slab_count * SLAB < 9_000_000  # two regions
    assert rows.residue() == 0


def test_a_failed_allocation_changes_nothing() -> None:
    rows = JaggedArray(2**30)
    rows.add_rows(ROWS)
    before = testing.rows(rows).tolist()
    with pytest.raises(MemoryError, match="no memory"):
        rows.reserve(1, 2**31)
    assert testing.rows(rows).tolist() == before
