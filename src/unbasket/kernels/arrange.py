"""From rows of purchases in any order to histories: grouped by user, baskets oldest first, items distinct."""

import numpy as np

from unbasket.kernels.jit import Codes, Int64s, jit


@jit
def rows_by_user(user: Codes, users: int, rows: Codes) -> Int64s:
    """Fill in the rows of each user, in the order they came (a counting sort); returns where each user's rows end."""
    ends = np.zeros(users, np.int64)
    for row in range(len(user)):
        ends[user[row]] += 1
    place = np.cumsum(ends) - ends
    for row in range(len(user)):
        rows[place[user[row]]] = row
        place[user[row]] += 1
    return place


@jit
def _by_basket(mine: Codes, basket: Codes) -> Codes:
    """A user's rows in order of (basket, row); order data often come sorted already."""
    for i in range(1, len(mine)):
        if basket[mine[i]] < basket[mine[i - 1]]:
            return mine[np.argsort(basket[mine], kind="mergesort")]
    return mine


@jit
def _baskets(mine: Codes, basket: Codes, time: Int64s) -> tuple[Int64s, int]:
    """Where in a user's rows, sorted by basket, each basket starts, and where the last one ends.

    Also a row whose time contradicts its basket's (-1: there is none).
    """
    starts = np.empty(len(mine) + 1, np.int64)
    count, conflict = 0, -1
    for i in range(len(mine)):
        if i == 0 or basket[mine[i]] != basket[mine[i - 1]]:
            starts[count] = i
            count += 1
        elif len(time) > 0 and time[mine[i]] != time[mine[i - 1]]:
            conflict = mine[i]
    starts[count] = len(mine)
    return starts[: count + 1], conflict


@jit
def _oldest_first(firsts: Codes, time: Int64s) -> Int64s:
    """The order of baskets with these first rows: by time, or by row if there are no times."""
    moments = firsts.astype(np.int64)
    if len(time) > 0:
        moments = time[firsts]
    for i in range(1, len(moments)):
        if moments[i] < moments[i - 1]:
            return np.argsort(moments, kind="mergesort")
    return np.arange(len(moments))


@jit
def arrange(
    rows: Codes,
    row_ends: Int64s,
    basket: Codes,
    item: Codes,
    time: Int64s,
    items: int,
    first_rows: Int64s,
    sizes: Int64s,
    purchases: Codes,
) -> tuple[int, int, int]:
    """Group rows, `rows_by_user`, into baskets, in order of (time, basket), or of first appearance without times.

    Fills in the first row and the size of each basket, and the items of all baskets, one after the other. Returns how
    many baskets and how many items that are, and a row whose time contradicts its basket's (-1: there is none).
    """
    newest = np.full(items, -1, np.int64)  # the last basket that an item was put into: a basket is a set
    baskets, count, begin, conflict = 0, 0, 0, -1
    for end in row_ends:
        mine = _by_basket(rows[begin:end], basket)
        begin = end
        starts, contradiction = _baskets(mine, basket, time)
        conflict = max(conflict, contradiction)
        firsts = mine[starts[:-1]]  # sorting is stable, so a basket's first row comes first
        for i in _oldest_first(firsts, time):
            before = count
            for j in range(starts[i], starts[i + 1]):
                if newest[item[mine[j]]] != baskets:
                    newest[item[mine[j]]] = baskets
                    purchases[count] = item[mine[j]]
                    count += 1
            first_rows[baskets] = firsts[i]
            sizes[baskets] = count - before
            baskets += 1
    return baskets, count, conflict
