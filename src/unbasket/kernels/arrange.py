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
def _baskets(mine: Int64s, basket: Int64s) -> Int64s:
    """Where in a user's rows, sorted by basket, each basket starts; and where the last one ends."""
    starts = np.empty(len(mine) + 1, np.int64)
    count = 0
    for i in range(len(mine)):
        if i == 0 or basket[mine[i]] != basket[mine[i - 1]]:
            starts[count] = i
            count += 1
    starts[count] = len(mine)
    return starts[: count + 1]


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
    newest = np.full(items, -1, np.int64)  # the last basket that an item was put into: a basket is a set
    baskets, count, begin, conflict = 0, 0, 0, -1
    for owner in range(users):
        mine = rows[begin : row_ends[owner]]
        begin = row_ends[owner]
        keys = np.empty(len(mine), np.int64)
        for i in range(len(mine)):
            keys[i] = basket[mine[i]]
        mine = mine[_sorted_order(keys)]
        starts = _baskets(mine, basket)
        firsts, moments = np.empty(len(starts) - 1, np.int64), np.empty(len(starts) - 1, np.int64)
        for i in range(len(firsts)):
            firsts[i] = mine[starts[i]]
            for j in range(starts[i], starts[i + 1]):
                firsts[i] = min(firsts[i], mine[j])
                if len(time) > 0 and time[mine[j]] != time[mine[starts[i]]]:
                    conflict = mine[j]
            moments[i] = time[firsts[i]] if len(time) > 0 else firsts[i]
        for i in _sorted_order(moments):
            before = count
            for j in range(starts[i], starts[i + 1]):
                if newest[item[mine[j]]] != baskets:
                    newest[item[mine[j]]] = baskets
                    purchases[count] = item[mine[j]]
                    count += 1
            owners[baskets] = owner
            codes[baskets] = basket[firsts[i]]
            first_rows[baskets] = firsts[i]
            sizes[baskets] = count - before
            baskets += 1
    return (
        conflict,
        owners[:baskets].copy(),
        codes[:baskets].copy(),
        first_rows[:baskets].copy(),
        sizes[:baskets].copy(),
        purchases[:count].copy(),
    )
