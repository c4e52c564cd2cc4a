"""Marks: states of the fold saved at the start of a group, to rewind to.

Only long histories have any: marks are MARK_EVERY baskets apart. A mark is kept while the end of the history is near
in proportion to how round its number is (the ruler function), so a history of n groups keeps O(log n) of them, dense
at its end. A change at position p finds a mark at most 2 (|H| - p) + MARK_EVERY baskets before p: the replay is
O(|H| - p), the paper's bound. Deletions that eat a history up from its end meet sparser marks, whose replay sets dense
ones again: O(log |H|) amortised.
"""

import numpy as np
from numba import int32, int64, types
from numba.experimental import structref

from unbasket.kernels.jit import Int32s, Int64s, Struct, compiled_struct, jit, new, whole
from unbasket.kernels.pool import (
    FLOAT_POOL,
    LENGTH,
    NONE,
    SINGLE,
    START,
    Pool,
    add_rows,
    append,
    clear_row,
    copy,
    float_pool,
    grown,
    reserve,
    wipe,
)
from unbasket.model.space import FoldSpace

MARK_EVERY = 256  # shorter histories are replayed from the start, in a few microseconds

OLDER, BASKETS, ITEMS, GROUPS = 0, 1, 2, 3
ITEM, LAST, LEVEL = 0, 1, 2


@structref.register
class MarksType(types.StructRef):
    """Numba's side of `Marks`."""


class Marks(Struct):
    """A chain of marks per user, newest first; mark numbers start at 1, and 0 ends a chain.

    `table` has, per mark, the next older one and what lies before it: baskets, items, groups. `levels` has the
    state itself. Unused marks are chained from `free`.
    """

    newest: Int32s
    table: Int64s
    levels: Pool
    free: int


MARKS = compiled_struct(MarksType, Marks, newest=int32[::1], table=int64[:, ::1], levels=FLOAT_POOL, free=int64)


@jit
def new_marks() -> Marks:
    """No marks, for no users."""
    marks = new(MARKS)
    marks.newest = np.zeros(0, np.int32)
    marks.table = np.zeros((1, 4), np.int64)
    marks.levels = float_pool(3)
    marks.free = 0
    return marks


@jit
def admit(marks: Marks, users: int) -> None:
    """Make room for user codes below `users`."""
    marks.newest = grown(marks.newest, users)


@jit
def worth_keeping(group: int, groups: int, stride: int) -> bool:
    """Whether a history of that many groups keeps a mark at the start of this one."""
    if group == 0 or group % stride != 0:
        return False
    number = group // stride
    return groups - group < 2 * stride * (number & -number)


@jit
def drop_from(marks: Marks, user: int, position: int) -> None:
    """Drop the marks that a change at `position` makes wrong.

    A mark right at the position goes too: under varying groups an inserted basket may join the group before it.
    """
    while marks.newest[user] != 0 and marks.table[marks.newest[user], BASKETS] >= position:
        mark = whole(marks.newest[user])
        marks.newest[user] = marks.table[mark, OLDER]
        _release(marks, mark)


@jit
def thin(marks: Marks, user: int, groups: int, stride: int) -> None:
    """Drop the marks that are no longer worth keeping."""
    newer = 0
    mark = whole(marks.newest[user])
    while mark != 0:
        older = marks.table[mark, OLDER]
        if worth_keeping(marks.table[mark, GROUPS], groups, stride):
            newer = mark
        else:
            if newer == 0:
                marks.newest[user] = older
            else:
                marks.table[newer, OLDER] = older
            _release(marks, mark)
        mark = older


@jit
def save(marks: Marks, user: int, baskets: int, items: int, groups: int, space: FoldSpace, count: int) -> None:
    """Set a mark at the start of a group, from the `count` items that the fold has touched so far."""
    mark = _claim(marks)
    marks.table[mark, OLDER] = marks.newest[user]
    marks.table[mark, BASKETS] = baskets
    marks.table[mark, ITEMS] = items
    marks.table[mark, GROUPS] = groups
    marks.newest[user] = mark
    reserve(marks.levels, mark, count)
    for i in range(count):
        item, place = space.touched[i], append(marks.levels, mark)
        data = marks.levels.data
        data[place, ITEM] = item
        data[place, LAST] = space.last[item]
        data[place, LEVEL] = space.level[item]


@jit
def restore(marks: Marks, mark: int, space: FoldSpace) -> int:
    """Put a mark's state into the work space; returns how many items it has."""
    data, place, count = marks.levels.data, marks.levels.rows[mark, START], marks.levels.rows[mark, LENGTH]
    for i in range(count):
        item = np.uint32(data[place + i, ITEM])
        space.touched[i] = item
        space.last[item] = np.int32(data[place + i, LAST])
        space.level[item] = data[place + i, LEVEL]
    return count


@jit
def _claim(marks: Marks) -> int:
    """The number of an unused mark."""
    if marks.free == 0:
        old = len(marks.table)
        table = np.zeros((2 * old, 4), np.int64)
        copy(marks.table, NONE, table, NONE, old)
        wipe(marks.table, NONE, old)
        for mark in range(old, 2 * old - 1):
            table[mark, OLDER] = mark + 1
        marks.table = table
        marks.free = old
        add_rows(marks.levels, 2 * old)
    mark = marks.free
    marks.free = marks.table[mark, OLDER]
    return mark


@jit
def _release(marks: Marks, mark: int) -> None:
    clear_row(marks.levels, mark)
    wipe(marks.table, mark, SINGLE)
    marks.table[mark, OLDER] = marks.free
    marks.free = mark
