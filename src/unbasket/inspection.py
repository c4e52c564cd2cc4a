"""What would betray a change that was not carried through: places that contradict the histories, or name nobody.

Nothing here trusts what events keep up to date. A vector is folded again from the start of the history, without marks;
the users of an item are searched one by one; the crowd's sums are added up again from its members' vectors.
"""

import numpy as np

from unbasket.kernels.jit import Bools, Codes, Int64s, jit, whole
from unbasket.kernels.pool import LENGTH, NONE, START, Pool
from unbasket.model import history
from unbasket.model.fold import fold_group, group_end
from unbasket.model.history import SIZE, Histories
from unbasket.model.marks import BASKETS, GROUPS, ITEMS, LAST, LEVEL, OLDER, Marks
from unbasket.model.marks import ITEM as MARKED
from unbasket.model.space import FoldSpace, clean, widen
from unbasket.neighbors.crowd import BLOCK, ITEM, WEIGHT, Crowd
from unbasket.neighbors.index import MAGNITUDES, PLACE, USER, Index, magnitude, vector_of
from unbasket.update import Live, query

HISTORY, VECTOR, ENTRIES, NORM, CHAINS, CROWD, MARKS, COUNTS, LITTER = range(9)
PLACES = (
    "the history",
    "the vector",
    "the entries under items",
    "the norm",
    "the chains of magnitudes",
    "the crowd",
    "the marks",
    "the counts of items",
    "the places that were left",
)
"""The places that are inspected. The last is only looked at for everybody at once."""


@jit
def trace(live: Live, user: int) -> tuple[Codes, Int64s, int]:
    """Where to look once something of a user is forgotten.

    These are the user's items, in how many baskets of others each of them is, and the magnitude of the norm.
    """
    _, bought = history.read(live.histories, user, NONE, history.count(live.histories, user))
    vector = vector_of(live.index, user)
    items = np.unique(np.concatenate((bought, vector[:, ITEM].copy())))
    elsewhere = live.histories.popularity[items]
    for i in range(len(bought)):
        elsewhere[np.searchsorted(items, bought[i])] -= 1
    return items, elsewhere, magnitude(live.index.norm[user])


@jit
def user_faults(live: Live, space: FoldSpace, user: int, items: Codes, elsewhere: Int64s, level: int) -> Int64s:
    """How many facts about a user are wrong, by `PLACES`; the last three arguments are the user's `trace`.

    Right is what a fold of the history from the start gives: nothing at all, if there is no history. It costs a pass
    over the users of these items, over the chains of two magnitudes and over the crowd's vectors: less than a query.
    """
    found = np.zeros(len(PLACES), np.int64)
    histories, index = live.histories, live.index
    if _is_torn(histories, user):
        found[HISTORY] = 1
        return found
    baskets, bought = history.read(histories, user, NONE, history.count(histories, user))
    fresh = query(baskets, bought, space, live.rule) if len(bought) > 0 else np.zeros((0, 2), np.uint32)
    weights = np.zeros(len(histories.popularity), np.uint32)
    norm = 0
    for i in range(len(fresh)):
        weights[fresh[i, ITEM]] = fresh[i, WEIGHT]
        norm += whole(fresh[i, WEIGHT]) * whole(fresh[i, WEIGHT])
    found[VECTOR] = _vector_faults(index, user, fresh)
    found[ENTRIES] = _entry_faults(index, user, items, weights)
    found[NORM] = index.norm[user] != norm
    found[CHAINS] = _rank_faults(index, user, level, norm)
    found[CROWD] = _crowd_faults(index, items) + _membership_faults(index, user)
    found[MARKS] = mark_faults(live, space, user)
    found[COUNTS] = _count_faults(histories, bought, items, elsewhere)
    return found


@jit
def _is_torn(histories: Histories, user: int) -> bool:
    """Whether a user's two rows, of baskets and of their items, do not belong together."""
    start, items = histories.baskets.rows[user, START], 0
    for place in range(start, start + histories.baskets.rows[user, LENGTH]):
        items += histories.baskets.data[place, SIZE]
    return bool(items != histories.items.rows[user, LENGTH])


@jit
def _vector_faults(index: Index, user: int, fresh: Codes) -> int:
    vector, count = vector_of(index, user), 0
    held = np.zeros(len(index.users.rows), np.uint32)
    for i in range(len(vector)):
        held[vector[i, ITEM]] = vector[i, WEIGHT]
    for i in range(len(fresh)):
        count += held[fresh[i, ITEM]] != fresh[i, WEIGHT]
    return count + abs(len(vector) - len(fresh))


@jit
def _entry_faults(index: Index, user: int, items: Codes, weights: Codes) -> int:
    """Whether items list the user as often as they should, with these weights, and where the vector says."""
    count = 0
    data = index.users.data
    for item in items:
        start, times = index.users.rows[item, START], 0
        for place in range(start, start + index.users.rows[item, LENGTH]):
            if data[place, USER] == user:
                times += 1
                count += data[place, WEIGHT] != weights[item]
        count += times != (weights[item] != 0)
    vector = vector_of(index, user)
    for i in range(len(vector)):
        item = vector[i, ITEM]
        place = index.users.rows[item, START] + vector[i, PLACE]
        count += vector[i, PLACE] >= index.users.rows[item, LENGTH] or data[place, USER] != user
    return count


@jit
def _rank_faults(index: Index, user: int, former: int, norm: int) -> int:
    """Whether the user is in the chain of this norm only, of the two that there is a reason to look at."""
    level = magnitude(norm)
    count, times = _chain_faults(index, level, user)
    count += times != (norm != 0)
    if former != level:
        faults, times = _chain_faults(index, former, user)
        count += faults + times
    return count + (norm == 0 and (index.after[user] != 0 or index.before[user] != 0))


@jit
def _chain_faults(index: Index, level: int, user: int) -> tuple[int, int]:
    """How many links of a magnitude's chain are wrong, and how often it has this user.

    A walk that goes in a circle ends behind as many users as there should be.
    """
    count, times, length = 0, 0, 0
    previous, link = 0, whole(index.first[level])
    while link != 0 and length <= index.population[level]:
        norm = index.norm[link - 1]
        count += norm == 0 or magnitude(norm) != level or index.before[link - 1] != previous
        times += link - 1 == user
        length += 1
        previous, link = link, whole(index.after[link - 1])
    return count + (length != index.population[level]), times


@jit
def _membership_faults(index: Index, user: int) -> int:
    """Whether the crowd has the user once, as a user with a vector, or not at all."""
    times, members = 0, index.crowd.members
    for i in range(len(members)):
        times += members[i] == user
    return int(times != index.crowd.is_member[user]) + int(times != 0 and index.norm[user] == 0)


@jit
def _crowd_faults(index: Index, items: Codes) -> int:
    """How many of the crowd's facts about these items, and of its totals, are not what its members' vectors give."""
    crowd = index.crowd
    sums, records, count = np.zeros(len(crowd.sums), np.int64), 0, 0
    for member in crowd.members:
        vector = vector_of(index, whole(member))
        records += len(vector)
        for i in range(len(vector)):
            sums[vector[i, ITEM]] += vector[i, WEIGHT]
    for item in items:
        count += crowd.sums[item] != sums[item] or not _is_listed(crowd, item, sums[item])
    for block in range(len(crowd.peaks)):
        peak = 0
        for i in range(block * BLOCK, min((block + 1) * BLOCK, len(crowd.listed))):
            peak = max(peak, crowd.listed[i])
        count += peak != crowd.peaks[block]
    return count + (records != crowd.records)


@jit
def _is_listed(crowd: Crowd, item: int, total: int) -> bool:
    """Whether the crowd's list has an item with this sum; one without a sum is not on it."""
    place = whole(crowd.place[item])
    if place == 0 or total == 0:
        return place == 0 and total == 0
    return bool(place <= crowd.count and crowd.items[place - 1] == item and crowd.listed[place - 1] == total)


@jit
def mark_faults(live: Live, space: FoldSpace, user: int) -> int:
    """How many of a user's marks are not the state of a fold from the start at their place."""
    histories, marks, rule = live.histories, live.marks, live.rule
    numbers = _marks_of(marks, user)
    if len(numbers) == 0:
        return 0
    widen(space, len(histories.popularity))
    baskets, bought = history.read(histories, user, NONE, history.count(histories, user))
    items = bought.reshape(-1, 1)
    position, place, group, count = NONE, NONE, NONE, NONE
    left = len(numbers)
    wrong = 0
    while position < len(baskets):
        if left > 0 and marks.table[numbers[left - 1], BASKETS] == position:
            left -= 1
            wrong += not _is_state(marks, numbers[left], place, group, space, count)
        end = group_end(baskets, position, rule)
        group += 1
        place, count = fold_group(baskets, position, end, items, place, group, rule, space, count)
        position = end
    clean(space, count)
    return wrong + left


@jit
def _marks_of(marks: Marks, user: int) -> Int64s:
    """The numbers of a user's marks, newest first; a chain that goes in a circle ends somewhere."""
    count, mark = 0, whole(marks.newest[user])
    while mark != 0 and count < len(marks.table):
        count, mark = count + 1, marks.table[mark, OLDER]
    numbers = np.zeros(count, np.int64)
    mark = whole(marks.newest[user])
    for i in range(count):
        numbers[i], mark = mark, marks.table[mark, OLDER]
    return numbers


@jit
def _is_state(marks: Marks, mark: int, items: int, groups: int, space: FoldSpace, count: int) -> bool:
    """Whether a mark is the state in the work space, of `count` items."""
    if marks.table[mark, ITEMS] != items or marks.table[mark, GROUPS] != groups:
        return False
    if marks.levels.rows[mark, LENGTH] != count:
        return False
    data, start = marks.levels.data, marks.levels.rows[mark, START]
    for place in range(start, start + count):
        item = whole(data[place, MARKED])
        if space.last[item] == 0 or space.last[item] != data[place, LAST] or space.level[item] != data[place, LEVEL]:
            return False
    return True


@jit
def _count_faults(histories: Histories, bought: Codes, items: Codes, elsewhere: Int64s) -> int:
    """How many of these items are counted otherwise than in the user's baskets and in those of others."""
    counts = elsewhere.copy()
    for i in range(len(bought)):
        counts[np.searchsorted(items, bought[i])] += 1
    faults = 0
    for i in range(len(items)):
        faults += histories.popularity[items[i]] != counts[i]
    return faults


@jit
def shared_faults(live: Live) -> Int64s:
    """How many facts that many users have a part in contradict vectors and histories, by `PLACES`."""
    found = np.zeros(len(PLACES), np.int64)
    index, popularity = live.index, live.histories.popularity
    found[ENTRIES] = _listing_faults(index)
    chained, members = 0, 0
    for level in range(MAGNITUDES):
        found[CHAINS] += _chain_faults(index, level, whole(-1))[0]
        chained += index.population[level]
    for user in range(len(index.norm)):
        chained -= index.norm[user] != 0
        members += index.crowd.is_member[user]
    found[CHAINS] += chained != 0
    found[CROWD] = _crowd_faults(index, np.arange(len(index.crowd.sums)).astype(np.uint32))
    for member in index.crowd.members:
        found[CROWD] += not index.crowd.is_member[member] or index.norm[member] == 0
    found[CROWD] += members != len(index.crowd.members)
    counts = _recounted(live.histories)
    for item in range(len(counts)):
        found[COUNTS] += popularity[item] != counts[item]
    return found


@jit
def _listing_faults(index: Index) -> int:
    """How many records of vectors are not where they say under their item, and how many more or fewer are there."""
    count, records = 0, 0
    for user in range(len(index.vectors.rows)):
        vector = vector_of(index, user)
        records += len(vector)
        for i in range(len(vector)):
            item = vector[i, ITEM]
            place = index.users.rows[item, START] + vector[i, PLACE]
            count += vector[i, PLACE] >= index.users.rows[item, LENGTH] or index.users.data[place, USER] != user
    return count + abs(int(records - index.users.rows[:, LENGTH].sum()))


@jit
def _recounted(histories: Histories) -> Int64s:
    """In how many baskets each item is, counted anew."""
    counts = np.zeros(len(histories.popularity), np.int64)
    data, rows = histories.items.data, histories.items.rows
    for user in range(len(rows)):
        for place in range(rows[user, START], rows[user, START] + rows[user, LENGTH]):
            counts[data[place, 0]] += 1
    return counts


@jit
def strays(live: Live, users: Bools, items: Bools) -> Int64s:
    """How many records are of a user or an item that is not there, by `PLACES`, and how many places were not wiped.

    `users` and `items` say which codes are in use.
    """
    found = np.zeros(len(PLACES), np.int64)
    histories, index = live.histories, live.index
    for user in range(len(index.norm)):
        if not _is_known(users, user):
            found[HISTORY] += histories.baskets.rows[user, LENGTH] + histories.items.rows[user, LENGTH]
            found[VECTOR] += index.vectors.rows[user, LENGTH]
            found[NORM] += index.norm[user] != 0
            found[CHAINS] += index.after[user] != 0 or index.before[user] != 0
            found[CROWD] += index.crowd.is_member[user]
            found[MARKS] += live.marks.newest[user] != 0
    for level in range(MAGNITUDES):
        found[CHAINS] += index.first[level] != 0 and not _is_known(users, whole(index.first[level]) - 1)
    for member in index.crowd.members:
        found[CROWD] += not _is_known(users, whole(member))
    for item in range(len(histories.popularity)):
        start, length = index.users.rows[item, START], index.users.rows[item, LENGTH]
        if not _is_known(items, item):
            found[ENTRIES] += length
            found[COUNTS] += histories.popularity[item] != 0
            found[CROWD] += index.crowd.sums[item] != 0
        for place in range(start, start + length):
            found[ENTRIES] += not _is_known(users, whole(index.users.data[place, USER]))
    found[MARKS] += _stray_marks(live.marks)
    found[LITTER] = (
        _litter(histories.baskets) + _litter(histories.items) + _litter(index.vectors) + _litter(index.users)
    ) + _litter(live.marks.levels)
    return found


@jit
def _is_known(known: Bools, code: int) -> bool:
    return code < len(known) and bool(known[code])


@jit
def _stray_marks(marks: Marks) -> int:
    """How many marks are not exactly one user's or unused, or are unused and say something of a history."""
    seen, count = np.zeros(len(marks.table), np.bool_), 0
    for user in range(len(marks.newest)):
        mark = whole(marks.newest[user])
        while mark != 0 and not seen[mark]:
            seen[mark] = True
            mark = marks.table[mark, OLDER]
        count += int(mark != 0)
    mark = marks.free
    while mark != 0 and not seen[mark]:
        seen[mark] = True
        count += int(marks.table[mark, BASKETS:].any() or marks.levels.rows[mark, LENGTH] != 0)
        mark = marks.table[mark, OLDER]
    count += int(mark != 0)
    for i in range(1, len(seen)):
        count += int(not seen[i])
    return count


@jit
def _litter(pool: Pool) -> int:
    """How many records of a pool are no row's, and not zero."""
    live = np.zeros(len(pool.data), np.bool_)
    for row in range(len(pool.rows)):
        for place in range(pool.rows[row, START], pool.rows[row, START] + pool.rows[row, LENGTH]):
            live[place] = True
    count = 0
    for place in range(len(pool.data)):
        count += not live[place] and pool.data[place].any()
    return count
