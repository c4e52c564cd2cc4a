"""What would betray a change that was not carried through: places that contradict the histories, or name nobody.

Nothing here trusts what events keep up to date. A vector is folded again from the start of the history, without marks;
the users of an item are searched one by one; the crowd's sums are added up again from its members' vectors.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.buffers cimport allocated, give_back
from unbasket.core.crowd cimport BLOCK, Crowd
from unbasket.core.fold cimport fold_group, replay
from unbasket.core.history cimport Histories, History
from unbasket.core.index cimport MAGNITUDES, Index, Posting, magnitude
from unbasket.core.live cimport Live
from unbasket.core.marks cimport Mark, Marks, SavedLevel
from unbasket.core.pool cimport Pool
from unbasket.core.rows cimport Rows
from unbasket.core.questions cimport rounded
from unbasket.core.space cimport FoldSpace
from unbasket.core.vector cimport Entry, Vector

# The places that are inspected, and their numbers. The last is only looked at for everybody at once.
PLACES = (
    "the history",
    "the vector",
    "the entries under items",
    "the norm",
    "the counts of magnitudes",
    "the crowd",
    "the marks",
    "the counts of items",
    "the pool",
    "the places that were left",
)


cdef enum:
    HISTORY
    VECTOR
    ENTRIES
    NORM
    MAGNITUDE_COUNTS
    CROWD
    MARKS
    ITEM_COUNTS
    POOL
    LITTER


def trace(Live live, Py_ssize_t user):
    """Where to look once something of a user is forgotten.

    That is, for each of the user's items, in how many baskets of others it is; and the magnitude of the norm.
    """
    cdef Histories histories = live.histories
    cdef uint32_t *bought = <uint32_t *> histories.items.first(user)
    cdef Entry *vector = live.index.vector(user)
    cdef Py_ssize_t i
    elsewhere = {}
    for i in range(live.index.vectors.length(user)):
        elsewhere[vector[i].item] = histories.popularity[vector[i].item]
    for i in range(histories.items.length(user)):
        elsewhere[bought[i]] = elsewhere.get(bought[i], histories.popularity[bought[i]]) - 1
    return elsewhere, level_of(live.index.norm[user])


cdef Py_ssize_t level_of(int64_t norm) noexcept nogil:
    return magnitude(norm) if norm > 0 else 0


def user_faults(Live live, FoldSpace space, Py_ssize_t user, dict elsewhere, Py_ssize_t level):
    """How many facts about a user are wrong, by `PLACES`; the last two arguments are the user's `trace`.

    Right is what a fold of the history from the start gives: nothing at all, if there is no history, and nothing in the
    index, if the user is not in the pool. It costs a pass over the users of these items, over all norms and over the crowd's vectors: less than a query.
    """
    cdef History history
    cdef Vector fresh
    cdef Py_ssize_t i
    found = [0] * len(PLACES)
    if is_torn(live.histories, user):
        found[HISTORY] = 1
        return found
    live.histories.of(user, &history)
    space.widen(live.histories.item_room)
    replay(&history, live.rule, space)
    fresh = rounded(space, live.rule)
    weights = {}
    if live.in_pool(user):
        weights = {fresh.entries[i].item: fresh.entries[i].weight for i in range(fresh.length)}
    norm = sum([weight * weight for weight in weights.values()])
    found[VECTOR] = vector_faults(live.index, user, weights)
    found[ENTRIES] = entry_faults(live.index, user, elsewhere, weights)
    found[NORM] = live.index.norm[user] != norm
    found[MAGNITUDE_COUNTS] = count_faults(live.index, level) + count_faults(live.index, level_of(norm))
    found[CROWD] = crowd_faults(live.index, list(elsewhere)) + membership_faults(live.index, user)
    found[MARKS] = mark_faults(live, space, user)
    found[ITEM_COUNTS] = item_faults(live.histories, user, elsewhere)
    found[POOL] = 0 if live.pool is None else is_misplaced(live.pool, user, history.length > 0)
    return found


cdef bint is_misplaced(Pool pool, Py_ssize_t user, bint is_there) except -1:
    """Whether a user is not in the line for the pool, or on the wrong side of its border; or is, and is gone."""
    cdef Py_ssize_t place = pool.places[user]
    if not is_there or not 0 < place <= pool.count or pool.line[place - 1] != user:
        return is_there or place != 0 or pool.lots[user] != 0
    if pool.count <= pool.size:
        return False
    if place <= pool.size:
        return pool.is_before(pool.line[pool.size], <uint32_t> user)
    return pool.is_before(<uint32_t> user, pool.line[0])


cdef bint is_torn(Histories histories, Py_ssize_t user) except -1:
    """Whether a user's two rows, of baskets and of their items, do not belong together."""
    cdef History history
    cdef Py_ssize_t i, items = 0
    histories.of(user, &history)
    for i in range(history.length):
        items += history.baskets[i].size
    return items != histories.items.length(user)


cdef Py_ssize_t vector_faults(Index index, Py_ssize_t user, dict weights) except -1:
    cdef Entry *vector = index.vector(user)
    cdef Py_ssize_t i, length = index.vectors.length(user)
    held = {vector[i].item: vector[i].weight for i in range(length)}
    return sum([held.get(item) != weight for item, weight in weights.items()]) + abs(length - len(weights))


cdef Py_ssize_t entry_faults(Index index, Py_ssize_t user, dict items, dict weights) except -1:
    """Whether items list the user as often as they should, with these weights, and where the vector says."""
    cdef Py_ssize_t place, times, count = 0
    cdef Posting *postings
    cdef uint32_t item, weight
    for item in items:
        weight = weights.get(item, 0)
        postings = <Posting *> index.postings.first(item)
        times = 0
        for place in range(index.postings.length(item)):
            if postings[place].user == user:
                times += 1
                count += postings[place].weight != weight
        count += times != (weight != 0)
    return count + misplaced(index, user)


cdef Py_ssize_t misplaced(Index index, Py_ssize_t user) except -1:
    """How many entries of a vector are not where they say under their item."""
    cdef Entry *vector = index.vector(user)
    cdef Posting *postings
    cdef Py_ssize_t i, count = 0
    for i in range(index.vectors.length(user)):
        postings = <Posting *> index.postings.first(vector[i].item)
        count += (
            vector[i].place >= index.postings.length(vector[i].item) or postings[vector[i].place].user != user
        )
    return count


cdef Py_ssize_t count_faults(Index index, Py_ssize_t level) except -1:
    """Whether there are as many users of a magnitude as are counted."""
    cdef Py_ssize_t user, count = 0
    for user in range(index.user_room):
        count += index.norm[user] > 0 and magnitude(index.norm[user]) == level
    return count != index.population[level]


cdef Py_ssize_t membership_faults(Index index, Py_ssize_t user) except -1:
    """Whether the crowd has the user once, as a user with a vector, or not at all."""
    cdef Py_ssize_t i, times = 0
    for i in range(index.crowd.member_count):
        times += index.crowd.members[i] == user
    return (times != index.crowd.is_member[user]) + (times != 0 and index.norm[user] == 0)


cdef Py_ssize_t crowd_faults(Index index, items) except -1:
    """How many of the crowd's facts about these items, and of its totals, are not what its members' vectors give."""
    cdef Crowd crowd = index.crowd
    cdef Entry *member
    cdef Py_ssize_t i, j, records = 0, count = 0
    cdef int64_t peak
    cdef int64_t *sums = <int64_t *> allocated(crowd.item_room, sizeof(int64_t))
    for i in range(crowd.member_count):
        member = index.vector(crowd.members[i])
        records += index.vectors.length(crowd.members[i])
        for j in range(index.vectors.length(crowd.members[i])):
            sums[member[j].item] += member[j].weight
    for i in items:
        count += crowd.sums[i] != sums[i] or not is_listed(crowd, i, sums[i])
    give_back(sums, crowd.item_room * sizeof(int64_t))
    for i in range(crowd.item_room // BLOCK):
        peak = 0
        for j in range(i * BLOCK, i * BLOCK + BLOCK):
            peak = max(peak, crowd.listed[j])
        count += peak != crowd.peaks[i]
    return count + (records != crowd.records)


cdef bint is_listed(Crowd crowd, Py_ssize_t item, int64_t total) noexcept:
    """Whether the crowd's list has an item with this sum; one without a sum is not on it."""
    cdef Py_ssize_t place = crowd.place[item]
    if place == 0 or total == 0:
        return place == 0 and total == 0
    return place <= crowd.count and crowd.items[place - 1] == item and crowd.listed[place - 1] == total


def mark_faults(Live live, FoldSpace space, Py_ssize_t user):
    """How many of a user's marks are not the state of a fold from the start at their place."""
    cdef History history
    cdef Mark state = Mark(0, 0, 0, 0)
    cdef Py_ssize_t wrong = 0, checked = 0
    cdef list marks = marks_of(live.marks, user)
    if not marks:
        return 0
    live.histories.of(user, &history)
    space.widen(live.histories.item_room)
    while state.baskets < history.length:
        if checked < len(marks) and live.marks.table[<Py_ssize_t> marks[checked]].baskets == state.baskets:
            wrong += not is_state(live.marks, marks[checked], &state, space)
            checked += 1
        fold_group(&history, &state, live.rule, space)
    space.clean()
    return wrong + len(marks) - checked


cdef list marks_of(Marks marks, Py_ssize_t user):
    """The numbers of a user's marks, oldest first; a chain that goes in a circle ends somewhere."""
    cdef Py_ssize_t mark = marks.newest[user]
    cdef list numbers = []
    while mark != 0 and len(numbers) < marks.size:
        numbers.append(mark)
        mark = marks.table[mark].older
    numbers.reverse()
    return numbers


cdef bint is_state(Marks marks, Py_ssize_t mark, const Mark *state, FoldSpace space) except -1:
    """Whether a mark is the state in the work space."""
    cdef SavedLevel *saved = <SavedLevel *> marks.levels.first(mark)
    cdef Py_ssize_t i
    if marks.table[mark].items != state.items or marks.table[mark].groups != state.groups:
        return False
    if marks.levels.length(mark) != space.count:
        return False
    for i in range(space.count):
        level = space.levels[saved[i].item]
        if level.last == 0 or level.last != saved[i].last or level.value != saved[i].value:
            return False
    return True


cdef Py_ssize_t item_faults(Histories histories, Py_ssize_t user, dict elsewhere) except -1:
    """How many of these items are counted otherwise than in the user's baskets and in those of others."""
    cdef uint32_t *bought = <uint32_t *> histories.items.first(user)
    cdef Py_ssize_t i
    counts = dict(elsewhere)
    for i in range(histories.items.length(user)):
        counts[bought[i]] = counts.get(bought[i], 0) + 1
    return sum([histories.popularity[<Py_ssize_t> item] != count for item, count in counts.items()])


def shared_faults(Live live):
    """How many facts that many users have a part in contradict vectors and histories, by `PLACES`."""
    cdef Index index = live.index
    cdef Py_ssize_t user, i, entries = 0, members = 0
    cdef int64_t *population = <int64_t *> allocated(MAGNITUDES, sizeof(int64_t))
    found = [0] * len(PLACES)
    for user in range(index.user_room):
        entries += index.vectors.length(user)
        found[ENTRIES] += misplaced(index, user)
        population[level_of(index.norm[user])] += index.norm[user] > 0
        members += index.crowd.is_member[user]
    for i in range(index.item_room):
        entries -= index.postings.length(i)
    found[ENTRIES] += abs(entries)
    for i in range(MAGNITUDES):
        found[MAGNITUDE_COUNTS] += population[i] != index.population[i]
    give_back(population, MAGNITUDES * sizeof(int64_t))
    found[CROWD] = crowd_faults(index, range(index.crowd.item_room)) + (members != index.crowd.member_count)
    for i in range(index.crowd.member_count):
        user = index.crowd.members[i]
        found[CROWD] += not index.crowd.is_member[user] or index.norm[user] == 0
    found[ITEM_COUNTS] = recount_faults(live.histories)
    found[POOL] = 0 if live.pool is None else order_faults(live.pool)
    return found


cdef Py_ssize_t order_faults(Pool pool) except -1:
    """How many users in the line for the pool are not where their lots say."""
    cdef Py_ssize_t place, above, count = 0
    for place in range(pool.count):
        count += pool.places[pool.line[place]] != place + 1
        if place < pool.size:
            above = (place - 1) // 2 if place else place
            count += pool.is_before(pool.line[above], pool.line[place])
        else:
            above = pool.size + (place - pool.size - 1) // 2 if place > pool.size else 0
            count += pool.is_before(pool.line[place], pool.line[above])
    return count


cdef Py_ssize_t recount_faults(Histories histories) except -1:
    """How many items are not counted as often as they are in baskets."""
    cdef int64_t *counts = <int64_t *> allocated(histories.item_room, sizeof(int64_t))
    cdef uint32_t *items
    cdef Py_ssize_t user, i, faults = 0
    for user in range(histories.items.count):
        items = <uint32_t *> histories.items.first(user)
        for i in range(histories.items.length(user)):
            counts[items[i]] += 1
    for i in range(histories.item_room):
        faults += counts[i] != histories.popularity[i]
    give_back(counts, histories.item_room * sizeof(int64_t))
    return faults


def strays(Live live, set users, set items):
    """How many records are of a user or an item that is not there, by `PLACES`, and how many places were not wiped.

    `users` and `items` are the codes in use.
    """
    cdef Histories histories = live.histories
    cdef Index index = live.index
    cdef Posting *postings
    cdef Py_ssize_t user, item, i
    found = [0] * len(PLACES)
    for user in range(index.user_room):
        if user not in users:
            found[HISTORY] += histories.baskets.length(user) + histories.items.length(user)
            found[VECTOR] += index.vectors.length(user)
            found[NORM] += index.norm[user] != 0
            found[CROWD] += index.crowd.is_member[user]
            found[MARKS] += live.marks.newest[user] != 0
            found[POOL] += live.pool is not None and is_misplaced(live.pool, user, False)
    if live.pool is not None:
        found[POOL] += abs(live.pool.count - len(users))
        for i in range(live.pool.count, live.pool.user_room):
            found[LITTER] += live.pool.line[i] != 0
    for i in range(index.crowd.member_count):
        found[CROWD] += index.crowd.members[i] not in users
    for item in range(index.item_room):
        if item not in items:
            found[ENTRIES] += index.postings.length(item)
            found[ITEM_COUNTS] += histories.popularity[item] != 0
            found[CROWD] += index.crowd.sums[item] != 0
        postings = <Posting *> index.postings.first(item)
        for i in range(index.postings.length(item)):
            found[ENTRIES] += postings[i].user not in users
    found[MARKS] += stray_marks(live.marks)
    for rows in (histories.baskets, histories.items, index.vectors, index.postings, live.marks.levels):
        found[LITTER] += (<Rows> rows).litter()
    for rows in (live.items, live.gone):  # of an event that is over
        found[LITTER] += (<Rows> rows).litter() + (<Rows> rows).length(0)
    return found


cdef Py_ssize_t stray_marks(Marks marks) except -1:
    """How many marks are not exactly one user's or unused, or are unused and say something of a history."""
    cdef uint8_t *seen = <uint8_t *> allocated(marks.size, sizeof(uint8_t))
    cdef Py_ssize_t user, mark, count = 0
    cdef Mark *unused
    for user in range(marks.user_room):
        mark = marks.newest[user]
        while mark != 0 and not seen[mark]:
            seen[mark] = True
            mark = marks.table[mark].older
        count += mark != 0
    mark = marks.unused
    while mark != 0 and not seen[mark]:
        seen[mark] = True
        unused = &marks.table[mark]
        count += unused.baskets != 0 or unused.items != 0 or unused.groups != 0 or marks.levels.length(mark) != 0
        mark = unused.older
    count += mark != 0
    for mark in range(1, marks.size):
        count += not seen[mark]
    give_back(seen, marks.size * sizeof(uint8_t))
    return count
