"""The baskets of every user, oldest first: the only thing the model is made of.

Users and items are dense codes here. A basket's record says which id it has (`KEY`: an int id itself, or the code of
a str id, told apart by the flag `TEXT`), when it was (`TIME`), how many items it holds (`SIZE`) and, under varying
groups, whether it opens a group (`OPENS`). The items stand in a second row, basket after basket.

A store may give a record the number of the row that it is saved in (a multiple of `ROW` in the flags; 0 for none).
Every change of a record takes that number away and notes it as outdated, so that a store learns, without knowing
what happened, which rows to erase and which records to save.

All work starts from the end of a history, so a change at position p costs O(|H| - p).
"""

import numpy as np
from numba import int64, types
from numba.experimental import structref

from unbasket.kernels.jit import Codes, Int64s, Struct, compiled_struct, jit, new
from unbasket.kernels.pool import (
    CODE_POOL,
    INT64_POOL,
    LENGTH,
    NONE,
    SINGLE,
    START,
    Pool,
    add_rows,
    append,
    clear_row,
    close_gap,
    code_pool,
    copy,
    grown,
    int64_pool,
    open_gap,
    reserve,
)

KEY, TIME, SIZE, FLAGS = 0, 1, 2, 3
TEXT, OPENS, ROW = 1, 2, 4
UNTIMED = -(2**63)


@structref.register
class HistoriesType(types.StructRef):
    """Numba's side of `Histories`."""


class Histories(Struct):
    """Rows of baskets and rows of items, one of each per user; and in how many baskets each item is.

    For a store: the numbers of its outdated rows (in a pool of one row), and how many records were not saved since
    these were last taken.
    """

    baskets: Pool
    items: Pool
    popularity: Int64s
    outdated: Pool
    unsaved: int


HISTORIES = compiled_struct(
    HistoriesType,
    Histories,
    baskets=INT64_POOL,
    items=CODE_POOL,
    popularity=int64[::1],
    outdated=INT64_POOL,
    unsaved=int64,
)


@jit
def new_histories() -> Histories:
    """Histories of no users."""
    histories = new(HISTORIES)
    histories.baskets = int64_pool(4)
    histories.items = code_pool(1)
    histories.popularity = np.zeros(0, np.int64)
    histories.outdated = int64_pool(1)
    add_rows(histories.outdated, SINGLE)
    histories.unsaved = 0
    return histories


@jit
def admit(histories: Histories, users: int, items: int) -> None:
    """Make room for user codes below `users` and item codes below `items`."""
    add_rows(histories.baskets, users)
    add_rows(histories.items, users)
    histories.popularity = grown(histories.popularity, items)


@jit
def count(histories: Histories, user: int) -> int:
    """The number of a user's baskets."""
    return histories.baskets.rows[user, LENGTH]


@jit
def find(histories: Histories, user: int, key: int, text: int) -> int:
    """The position of the basket with this id, or -1."""
    data, start = histories.baskets.data, histories.baskets.rows[user, START]
    for i in range(start + histories.baskets.rows[user, LENGTH] - 1, start - 1, -1):
        if data[i, KEY] == key and data[i, FLAGS] & TEXT == text:
            return i - start
    return -1


@jit
def slot(histories: Histories, user: int, time: int) -> tuple[int, bool]:
    """The last position where a basket of this time may be inserted, and whether one of the same time is before it.

    Timed baskets are in order of (time, id); a basket without a time stays behind the one it arrived after. Among
    baskets of the same time the ids decide, which only the caller knows.
    """
    data, start = histories.baskets.data, histories.baskets.rows[user, START]
    last = histories.baskets.rows[user, LENGTH]
    if time != UNTIMED:
        for position in range(last - 1, -1, -1):
            other = data[start + position, TIME]
            if other != UNTIMED and other <= time:
                return last, other == time
            if other != UNTIMED:
                last = position
    return last, False


@jit
def offset(histories: Histories, user: int, position: int) -> int:
    """How many items the baskets before `position` hold."""
    data, start = histories.baskets.data, histories.baskets.rows[user, START]
    items = histories.items.rows[user, LENGTH]
    for i in range(start + position, start + histories.baskets.rows[user, LENGTH]):
        items -= data[i, SIZE]
    return items


@jit
def basket_items(histories: Histories, user: int, position: int) -> Codes:
    """The items of one basket."""
    size = histories.baskets.data[histories.baskets.rows[user, START] + position, SIZE]
    first = histories.items.rows[user, START] + offset(histories, user, position)
    return histories.items.data[first : first + size, 0].copy()


@jit
def insert(
    histories: Histories,
    user: int,
    position: int,
    key: int,
    flags: int,
    time: int,
    items: Codes,
    group_size: int,
) -> None:
    """Insert a basket. `group_size` is m under varying groups, and 0 under fixed ones, which need no flag."""
    if group_size > 0 and _group_is_full(histories, user, position, group_size):
        flags |= OPENS
    _add_items(histories, user, offset(histories, user, position), items)
    place = open_gap(histories.baskets, user, position, SINGLE)
    data = histories.baskets.data
    data[place, KEY] = key
    data[place, TIME] = time
    data[place, SIZE] = len(items)
    data[place, FLAGS] = flags
    histories.unsaved += flags < ROW


@jit
def _group_is_full(histories: Histories, user: int, position: int, group_size: int) -> bool:
    """Whether the group of the basket before `position` has no room (or there is no such basket).

    One rule for all insertions under varying groups: join that group while it has fewer than m baskets, else open
    a new one. At the end of a history this is the paper's rule; a late basket inside a full group splits it there.
    """
    if position == 0:
        return True
    data, start = histories.baskets.data, histories.baskets.rows[user, START]
    first = start + position - 1
    while not data[first, FLAGS] & OPENS:
        first -= 1
    end = start + position
    while end < start + histories.baskets.rows[user, LENGTH] and not data[end, FLAGS] & OPENS:
        end += 1
    return end - first >= group_size


@jit
def remove(histories: Histories, user: int, position: int) -> None:
    """Remove a basket. If it opened a group that goes on, the next basket opens it now."""
    data, start = histories.baskets.data, histories.baskets.rows[user, START]
    place, end = start + position, start + histories.baskets.rows[user, LENGTH]
    if data[place, FLAGS] & OPENS and place + 1 < end:
        _open_group(histories, place + 1)
    _outdate(histories, place)
    _drop_items(histories, user, offset(histories, user, position), data[place, SIZE])
    close_gap(histories.baskets, user, position, SINGLE)


@jit
def replace(histories: Histories, user: int, position: int, items: Codes) -> None:
    """Give a basket other items; its place and its group stay."""
    first = offset(histories, user, position)
    place = histories.baskets.rows[user, START] + position
    size = histories.baskets.data[place, SIZE]
    _add_items(histories, user, first + size, items)
    _drop_items(histories, user, first, size)
    histories.baskets.data[place, SIZE] = len(items)
    _outdate(histories, place)
    histories.unsaved += 1


@jit
def _open_group(histories: Histories, place: int) -> None:
    """Let a basket open its group, if it does not yet."""
    if not histories.baskets.data[place, FLAGS] & OPENS:
        histories.baskets.data[place, FLAGS] |= OPENS
        _outdate(histories, place)
        histories.unsaved += 1


@jit
def _outdate(histories: Histories, place: int) -> None:
    """Note that a store's row does not say any more what the record at a place does."""
    flags = histories.baskets.data[place, FLAGS]
    if flags >= ROW:
        last = append(histories.outdated, NONE)
        histories.outdated.data[last, 0] = flags // ROW
        histories.baskets.data[place, FLAGS] = flags % ROW


@jit
def remove_item(histories: Histories, user: int, first: int, end: int, item: int) -> tuple[int, int, Int64s]:
    """Remove an item from the baskets at positions `first` to `end`, in one pass over all from `first` on.

    Returns how many held it, the position of the oldest of those, and the records of the baskets that it was the
    last item of, which are gone.
    """
    baskets, start = histories.baskets.data, histories.baskets.rows[user, START]
    items, place = histories.items.data, histories.items.rows[user, START] + offset(histories, user, first)
    gone = np.zeros((end - first, 4), np.int64)
    removed, oldest, emptied, target, opens = NONE, end, NONE, place, NONE
    for position in range(first, histories.baskets.rows[user, LENGTH]):
        kept = 0
        size = baskets[start + position, SIZE]
        for i in range(place, place + size):
            if items[i, 0] != item or position >= end:
                items[target + kept, 0] = items[i, 0]
                kept += 1
        place += size
        target += kept
        if kept < size:
            removed += 1
            oldest = min(oldest, position)
            _outdate(histories, start + position)
        if kept == 0:
            copy(baskets, start + position, gone, emptied, SINGLE)
            opens |= baskets[start + position, FLAGS] & OPENS  # the next basket opens the group then
            emptied += 1
        else:
            copy(baskets, start + position, baskets, start + position - emptied, SINGLE)
            baskets[start + position - emptied, SIZE] = kept
            histories.unsaved += kept < size
            if opens:
                _open_group(histories, start + position - emptied)
            opens = 0
    histories.popularity[item] -= removed
    close_gap(histories.items, user, histories.items.rows[user, LENGTH] - removed, removed)
    close_gap(histories.baskets, user, histories.baskets.rows[user, LENGTH] - emptied, emptied)
    return removed, oldest, gone[:emptied]


@jit
def _add_items(histories: Histories, user: int, first: int, items: Codes) -> None:
    place = open_gap(histories.items, user, first, len(items))
    data, popularity = histories.items.data, histories.popularity
    for i in range(len(items)):
        data[place + i, 0] = items[i]
        popularity[items[i]] += 1


@jit
def _drop_items(histories: Histories, user: int, first: int, count: int) -> None:
    data, start = histories.items.data, histories.items.rows[user, START]
    for i in range(start + first, start + first + count):
        histories.popularity[data[i, 0]] -= 1
    close_gap(histories.items, user, first, count)


@jit
def load(histories: Histories, user: int, baskets: Int64s, items: Codes) -> None:
    """Fill the empty history of a user with records that are in order already."""
    reserve(histories.baskets, user, len(baskets))
    copy(baskets, NONE, histories.baskets.data, histories.baskets.rows[user, START], len(baskets))
    histories.baskets.rows[user, LENGTH] = len(baskets)
    reserve(histories.items, user, len(items))
    _add_items(histories, user, NONE, items)


@jit
def clear(histories: Histories, user: int) -> None:
    """Remove all baskets of a user."""
    _drop_items(histories, user, NONE, histories.items.rows[user, LENGTH])
    start = histories.baskets.rows[user, START]
    for place in range(start, start + histories.baskets.rows[user, LENGTH]):
        _outdate(histories, place)
    clear_row(histories.baskets, user)


@jit
def read(histories: Histories, user: int, first: int, end: int) -> tuple[Int64s, Codes]:
    """A copy of a user's basket records at positions `first` to `end`, and of their items."""
    start = histories.baskets.rows[user, START]
    baskets = histories.baskets.data[start + first : start + end].copy()
    place = histories.items.rows[user, START] + offset(histories, user, first)
    return baskets, histories.items.data[place : place + baskets[:, SIZE].sum(), 0].copy()


@jit
def save(histories: Histories, user: int, position: int, row: int) -> None:
    """Give a record the number of the row that it is saved in."""
    flags = histories.baskets.data[histories.baskets.rows[user, START] + position, FLAGS]
    histories.baskets.data[histories.baskets.rows[user, START] + position, FLAGS] = flags % ROW + row * ROW


@jit
def take_outdated(histories: Histories) -> Int64s:
    """The numbers of the rows that became outdated since this was last asked; all records are taken as saved."""
    rows = histories.outdated.rows[0]
    numbers = histories.outdated.data[rows[START] : rows[START] + rows[LENGTH], 0].copy()
    clear_row(histories.outdated, NONE)
    histories.unsaved = 0
    return numbers


@jit
def take_changes(histories: Histories, user: int) -> tuple[Int64s, Int64s, int]:
    """What a store has to do after an event of a user: outdated rows, positions to save, and how many there are.

    Positions are looked for from the end on, until as many are found as were made since this was last asked.
    """
    data, start = histories.baskets.data, histories.baskets.rows[user, START]
    length = histories.baskets.rows[user, LENGTH]
    found, positions = NONE, np.empty(min(histories.unsaved, length), np.int64)
    for position in range(length - 1, -1, -1):
        if found == len(positions):
            break
        if data[start + position, FLAGS] < ROW:
            positions[found] = position
            found += 1
    return take_outdated(histories), positions[:found][::-1].copy(), length
