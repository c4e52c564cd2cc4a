"""From rows of purchases in any order to histories: grouped by user, baskets oldest first, items distinct."""

import numpy as np

from unbasket.kernels.jit import Codes, Int64s, jit


@jit
def rows_by_user(user: Codes, users: int) -> tuple[Int64s, Int64s]:
    """The rows of each user, in the order they came (a counting sort), and where each user's rows end."""
    ends = np.zeros(users, np.int64)
    for row in range(len(user)):
        ends[user[row]] += 1
    place = np.cumsum(ends) - ends
    rows = np.empty(len(user), np.int64)
    for row in range(len(user)):
        rows[place[user[row]]] = row
        place[user[row]] += 1
    return rows, place


@jit
def _sorted_order(keys: Int64s) -> Int64s:
    """The order that sorts keys stably; order data often come sorted already."""
    for i in range(1, len(keys)):
        if keys[i] < keys[i - 1]:
            return np.argsort(keys, kind="mergesort")
    return np.arange(len(keys))


@jit
def arrange(
    user: Codes, basket: Int64s, item: Codes, time: Int64s, users: int, items: int
) -> tuple[int, Codes, Int64s, Int64s, Int64s, Codes]:
    """Group rows into baskets, in order of (time, basket), or of first appearance if there are no times.

    Returns a row whose time contradicts its basket's (-1: there is none), and per basket its user, its code, its
    first row and its size, and the items of all baskets.
    """
    rows, row_ends = rows_by_user(user, users)
    owners, codes = np.empty(len(rows), np.uint32), np.empty(len(rows), np.int64)
    first_rows, sizes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    purchases = np.empty(len(rows), np.uint32)
    baskets, count, begin = 0, 0, 0
    for owner in range(users):
        mine = rows[begin : row_ends[owner]]
        begin = row_ends[owner]
        mine = mine[_sorted_order(basket[mine] * items + item[mine])]
        starts = np.flatnonzero(np.append(True, basket[mine][1:] != basket[mine][:-1]))
        moments = np.empty(len(starts), np.int64)
        for i in range(len(starts)):
            end = starts[i + 1] if i + 1 < len(starts) else len(mine)
            first = mine[starts[i] : end].min()
            moments[i] = time[first] if len(time) > 0 else first
            for j in range(starts[i], end):
                if len(time) > 0 and time[mine[j]] != moments[i]:
                    return mine[j], owners[:0], codes[:0], first_rows[:0], sizes[:0], purchases[:0]
        for i in _sorted_order(moments):
            end = starts[i + 1] if i + 1 < len(starts) else len(mine)
            before = count
            for j in range(starts[i], end):
                if count == before or purchases[count - 1] != item[mine[j]]:
                    purchases[count] = item[mine[j]]
                    count += 1
            owners[baskets] = owner
            codes[baskets] = basket[mine[starts[i]]]
            first_rows[baskets] = mine[starts[i] : end].min()
            sizes[baskets] = count - before
            baskets += 1
    return (
        -1,
        owners[:baskets].copy(),
        codes[:baskets].copy(),
        first_rows[:baskets].copy(),
        sizes[:baskets].copy(),
        purchases[:count].copy(),
    )
