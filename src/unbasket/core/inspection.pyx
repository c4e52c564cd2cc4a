"""What would betray a change that was not carried through: places that contradict the histories, or name nobody.

Nothing here trusts what events keep up to date. A vector is folded again from the start of the history, without marks;
the users of an item are searched one by one; the crowd's sums are added up again from its members' vectors.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.buffers cimport allocated, give_back
from unbasket.core.crowd cimport Crowd
from unbasket.core.fold cimport fold_group, replay
from unbasket.core.history cimport Histories, History
from unbasket.core.index cimport MAGNITUDES, Index, magnitude, magnitude_end
from unbasket.core.live cimport Live
from unbasket.core.marks cimport Mark, Marks, SavedLevel
from unbasket.core.part cimport Part, Posting
from unbasket.core.pool cimport Pool
from unbasket.core.rows cimport Rows
from unbasket.core.questions cimport rounded
from unbasket.core.space cimport FoldSpace
from unbasket.core.vector cimport Entry, Vector

# The places that are inspected, and their numbers. The last is only looked at for everybody at once.
PLACES = (
    "the history",
    "the slot",
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
    RECORDS = 1 << 16  # that a piece looks at, in a millisecond or so


cdef enum:
    HISTORY
    SLOT
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

    That is, for each of the user's items, in how many baskets of others it is; the magnitude of the norm; and the slot
    (-1: none).
    """
    cdef Histories histories = live.histories
    cdef uint32_t *bought = <uint32_t *> histories.items.first(user)
    cdef Py_ssize_t slot = live.index.slot_of(user), i
    cdef int64_t norm = 0
    cdef Entry *vector
    elsewhere = {}
    if not owns(live.index, user, slot):
        slot = -1
    if slot >= 0:
        norm = part_at(live.index, slot).norm[live.index.row_of(slot)]
        vector = live.index.vector(slot)
        for i in range(live.index.length(slot)):
            elsewhere[vector[i].item] = histories.popularity[vector[i].item]
    for i in range(histories.items.length(user)):
        elsewhere[bought[i]] = elsewhere.get(bought[i], histories.popularity[bought[i]]) - 1
    return elsewhere, level_of(norm), slot


cdef Part part_at(Index index, Py_ssize_t slot):
    return index.parts[slot // index.part_size]


cdef bint owns(Index index, Py_ssize_t user, Py_ssize_t slot):
    """Whether a slot is this user's."""
    return 0 <= slot < index.slot_end and part_at(index, slot).owner[index.row_of(slot)] == user


cdef Py_ssize_t level_of(int64_t norm) noexcept nogil:
    return magnitude(norm) if norm > 0 else 0


def user_faults(Live live, FoldSpace space, Py_ssize_t user, dict elsewhere, Py_ssize_t level, Py_ssize_t old_slot):
    """How many facts about a user are wrong, by `PLACES`; the last three arguments are the user's `trace`.

    Right is what a fold of the history from the start gives: nothing at all, if there is no history, and nothing in the
    index, if the user is not in the pool. It costs a pass over the users of these items, over all norms and over the
    crowd's vectors: less than a query.
    """
    cdef Index index = live.index
    cdef History history
    cdef Census census
    cdef Py_ssize_t slot = index.slot_of(user)
    found = [0] * len(PLACES)
    if is_torn(live.histories, user):
        found[HISTORY] = 1
        return found
    if slot >= 0 and not owns(index, user, slot):
        found[SLOT] = 1
        return found
    live.histories.of(user, &history)
    space.widen(live.histories.item_room)
    replay(&history, live.rule, space)
    fresh = weights_of(rounded(space, live.rule))
    weights = fresh if live.in_pool(user) else {}
    norm = sum([weight * weight for weight in weights.values()])
    census = census_of(index, level, level_of(norm))
    found[SLOT] = ((slot >= 0) != (norm > 0)) + chain_faults(index, census.empty)
    if slot >= 0:
        found[VECTOR] = vector_faults(index, slot, weights)
        found[NORM] = part_at(index, slot).norm[index.row_of(slot)] != norm
    for place in {slot, old_slot} - {-1}:
        found[ENTRIES] += entry_faults(index, place, elsewhere, weights if place == slot else held_in(index, place))
        found[CROWD] += membership_faults(index, place)
        found[SLOT] += is_littered(index, place)
    found[MAGNITUDE_COUNTS] = census.old != index.population[level]
    found[MAGNITUDE_COUNTS] += census.new != index.population[level_of(norm)]
    found[CROWD] += crowd_faults(index, list(elsewhere))
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


cdef dict weights_of(Vector vector):
    cdef Py_ssize_t i
    return {vector.entries[i].item: vector.entries[i].weight for i in range(vector.length)}


cdef dict held_in(Index index, Py_ssize_t slot):
    """What a vector of the index has."""
    cdef Entry *vector = index.vector(slot)
    cdef Py_ssize_t i
    return {vector[i].item: vector[i].weight for i in range(index.length(slot))}


cdef bint is_littered(Index index, Py_ssize_t slot):
    """Whether a slot is nobody's, and holds something."""
    cdef Part part = part_at(index, slot)
    cdef Py_ssize_t row = index.row_of(slot), owner = part.owner[row]
    if owner < index.user_room and index.slot_of(owner) == slot:
        return False
    return part.norm[row] != 0 or part.member[row] != 0 or part.vectors.length(row) != 0


cdef bint is_torn(Histories histories, Py_ssize_t user) except -1:
    """Whether a user's two rows, of baskets and of their items, do not belong together."""
    cdef History history
    cdef Py_ssize_t i, items = 0
    histories.of(user, &history)
    for i in range(history.length):
        items += history.baskets[i].size
    return items != histories.items.length(user)


cdef Py_ssize_t vector_faults(Index index, Py_ssize_t slot, dict weights) except -1:
    held = held_in(index, slot)
    return sum([held.get(item) != weight for item, weight in weights.items()]) + abs(index.length(slot) - len(weights))


cdef Py_ssize_t entry_faults(Index index, Py_ssize_t slot, dict items, dict weights) except -1:
    """Whether items list a slot as often as they should, with these weights, and where its vector says."""
    cdef Part part = part_at(index, slot)
    cdef Py_ssize_t row = index.row_of(slot), place, times, count = 0
    cdef Posting *postings
    cdef uint32_t item, weight
    for item in items:
        weight = weights.get(item, 0)
        postings = <Posting *> part.postings.first(item)
        times = 0
        for place in range(part.postings.length(item)):
            if postings[place].row == row:
                times += 1
                count += postings[place].weight != weight
        count += times != (weight != 0)
    return count + misplaced(part, row)


cdef Py_ssize_t misplaced(Part part, Py_ssize_t row) except -1:
    """How many entries of a vector are not where they say under their item."""
    cdef Entry *vector = part.vector(row)
    cdef Posting *postings
    cdef Py_ssize_t i, count = 0
    for i in range(part.vectors.length(row)):
        postings = <Posting *> part.postings.first(vector[i].item)
        count += vector[i].place >= part.postings.length(vector[i].item) or postings[vector[i].place].row != row
    return count


cdef struct Census:
    Py_ssize_t empty, old, new


cdef Census census_of(Index index, Py_ssize_t old, Py_ssize_t new):
    """How many slots are empty, and how many users there are of two magnitudes: one pass over all norms."""
    cdef Census census = Census(0, 0, 0)
    cdef int64_t old_start = magnitude_start(old), old_end = magnitude_end(old)
    cdef int64_t new_start = magnitude_start(new), new_end = magnitude_end(new)
    cdef Part part
    cdef int64_t *norms
    cdef Py_ssize_t row
    for part in index.parts:
        norms = part.norm
        for row in range(part.end):
            census.empty += norms[row] == 0
            census.old += old_start <= norms[row] < old_end
            census.new += new_start <= norms[row] < new_end
    return census


cdef int64_t magnitude_start(Py_ssize_t level) noexcept nogil:
    """The smallest squared norm of a magnitude."""
    return magnitude_end(level - 1) if level else 1


cdef Py_ssize_t membership_faults(Index index, Py_ssize_t slot) except -1:
    """Whether the crowd has a slot once, under its number there, or not at all."""
    cdef Crowd crowd = index.crowd
    cdef Part part = part_at(index, slot)
    cdef Py_ssize_t i, times = 0, number = part.member[index.row_of(slot)]
    for i in range(crowd.member_count):
        times += crowd.members[i] == slot
    if number == 0:
        return times
    return times != 1 or number > crowd.member_count or crowd.members[number - 1] != slot


cdef Py_ssize_t crowd_faults(Index index, items) except -1:
    """How many of the crowd's facts about these items, and of its totals, are not what its members' vectors give."""
    cdef Crowd crowd = index.crowd
    cdef Entry *member
    cdef Py_ssize_t i, j, slot, length, records = 0, count = 0
    cdef int64_t *sums = <int64_t *> allocated(crowd.item_room, sizeof(int64_t))
    for i in range(crowd.member_count):
        slot = crowd.members[i]
        if slot >= index.slot_end:
            count += 1
            continue
        member, length = index.vector(slot), index.length(slot)
        records += length
        for j in range(length):
            sums[member[j].item] += member[j].weight
    for i in items:
        count += crowd.sums[i] != sums[i] or not is_listed(crowd, i, sums[i])
    give_back(sums, crowd.item_room * sizeof(int64_t))
    for i in range(1, crowd.count):
        count += crowd.heap[(i - 1) >> 1].total < crowd.heap[i].total
    return count + (records != crowd.records)


cdef bint is_listed(Crowd crowd, Py_ssize_t item, int64_t total) noexcept:
    """Whether the crowd's list has an item with this sum; one without a sum is not on it."""
    cdef Py_ssize_t place = crowd.place[item]
    if place == 0 or total == 0:
        return place == 0 and total == 0
    return place <= crowd.count and crowd.heap[place - 1].item == item and crowd.heap[place - 1].total == total


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


def slot_faults(Live live, Py_ssize_t first):
    """How many facts about slots, from one on, contradict vectors and owners, by `PLACES`; and where to go on.

    Like all pieces, it ends when it has looked at some `RECORDS`; the last says that it goes on at -1.
    """
    cdef Index index = live.index
    cdef Py_ssize_t slot, row, user, looked = 0
    cdef Part part
    found = [0] * len(PLACES)
    for slot in range(first, index.slot_end):
        if looked >= RECORDS:
            return found, slot
        part, row = part_at(index, slot), index.row_of(slot)
        user = part.owner[row]
        found[ENTRIES] += misplaced(part, row)
        if part.norm[row] != 0:
            found[SLOT] += user >= index.user_room or index.slot_of(user) != slot
        else:
            found[SLOT] += is_littered(index, slot)
        looked += 1 + part.vectors.length(row)
    return found, -1


def entry_strays(Live live, Py_ssize_t first):
    """How many entries under items, from one on, are of a row that is nobody's, by `PLACES`; and where to go on."""
    cdef Index index = live.index
    cdef Py_ssize_t item, i, row, looked = 0
    cdef Posting *postings
    cdef Part part
    found = [0] * len(PLACES)
    for item in range(first, index.item_room):
        if looked >= RECORDS:
            return found, item
        for part in index.parts:
            postings = <Posting *> part.postings.first(item)
            for i in range(part.postings.length(item)):
                row = postings[i].row
                found[ENTRIES] += row >= part.end or part.norm[row] == 0
            looked += 1 + part.postings.length(item)
    return found, -1


def part_faults(Live live, Py_ssize_t number):
    """Whether a part has as many entries in vectors as under items, by `PLACES`; and where to go on."""
    cdef Index index = live.index
    cdef Py_ssize_t i, entries = 0
    found = [0] * len(PLACES)
    if number >= len(index.parts):
        return found, -1
    cdef Part part = index.parts[number]
    for i in range(part.end):
        entries += part.vectors.length(i)
    for i in range(index.item_room):
        entries -= part.postings.length(i)
    found[ENTRIES] = abs(entries)
    return found, number + 1


def total_faults(Live live):
    """How many counts and sums over all users contradict what is counted, by `PLACES`: a pass over all norms."""
    cdef Index index = live.index
    cdef Part part
    cdef Py_ssize_t row, i, user
    cdef int64_t *population = <int64_t *> allocated(MAGNITUDES, sizeof(int64_t))
    found = [0] * len(PLACES)
    for part in index.parts:
        for row in range(part.end):
            population[level_of(part.norm[row])] += part.norm[row] > 0
    for i in range(MAGNITUDES):
        found[MAGNITUDE_COUNTS] += population[i] != index.population[i]
    give_back(population, MAGNITUDES * sizeof(int64_t))
    found[SLOT] = chain_faults(index, census_of(index, 0, 0).empty)
    for user in range(index.user_room):
        i = index.slot_of(user)
        found[SLOT] += i >= 0 and not owns(index, user, i)
    found[CROWD] = crowd_faults(index, range(index.crowd.item_room)) + member_faults(index)
    found[POOL] = 0 if live.pool is None else order_faults(live.pool)
    return found


def item_count_faults(Live live):
    """How many items are not counted as often as they are in baskets, by `PLACES`: a pass over all histories."""
    found = [0] * len(PLACES)
    found[ITEM_COUNTS] = recount_faults(live.histories)
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


cdef Py_ssize_t chain_faults(Index index, Py_ssize_t empty) except -1:
    """Whether the chain of slots that are nobody's has as many as are empty, and only such."""
    cdef Py_ssize_t slot, unused = index.unused
    while 0 < unused <= index.slot_end and empty >= 0:  # a chain that goes in a circle ends too
        empty -= 1
        slot = unused - 1
        if part_at(index, slot).norm[index.row_of(slot)] != 0:
            return 1
        unused = part_at(index, slot).owner[index.row_of(slot)]
    return empty != 0 or unused != 0


cdef Py_ssize_t member_faults(Index index) except -1:
    """How many members of the crowd do not bear their number, or how many slots bear one though they are no members."""
    cdef Crowd crowd = index.crowd
    cdef Part part
    cdef Py_ssize_t i, row, slot, members = 0, count = 0
    for part in index.parts:
        for row in range(part.end):
            members += part.member[row] != 0
    for i in range(crowd.member_count):
        slot = crowd.members[i]
        count += slot >= index.slot_end or part_at(index, slot).member[index.row_of(slot)] != i + 1
    return count + (members != crowd.member_count)


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


def user_strays(Live live, list names, Py_ssize_t first):
    """How many records, from a user's on, are of a user who is not there, by `PLACES`; and where to go on.

    `names` are the ids of those who have a code; one that is not in use has an empty name.
    """
    cdef Histories histories = live.histories
    cdef Index index = live.index
    cdef Pool pool = live.pool
    cdef Py_ssize_t user, room = max(histories.baskets.count, index.user_room, live.marks.user_room)
    found = [0] * len(PLACES)
    if pool is not None:
        room = max(room, pool.user_room)
    for user in range(first, min(first + RECORDS, room)):
        if user < len(names) and names[user] != "":
            continue
        if user < histories.baskets.count:
            found[HISTORY] += histories.baskets.length(user) + histories.items.length(user)
        found[SLOT] += user < index.user_room and index.slot_of(user) >= 0
        found[MARKS] += user < live.marks.user_room and live.marks.newest[user] != 0
        found[POOL] += pool is not None and user < pool.user_room and is_misplaced(pool, user, False)
    return found, first + RECORDS if first + RECORDS < room else -1


def strays(Live live, Py_ssize_t users, list items):
    """How many records are of an item that is not there, or of no user's, by `PLACES`; and how many were not wiped.

    That is, with so many users, and items of these names.
    """
    cdef Histories histories = live.histories
    cdef Index index = live.index
    cdef Py_ssize_t item
    cdef Part part
    found = [0] * len(PLACES)
    for item in range(index.item_room):
        if item >= len(items) or items[item] == "":
            found[ITEM_COUNTS] += histories.popularity[item] != 0
            found[CROWD] += index.crowd.sums[item] != 0
            for part in index.parts:
                found[ENTRIES] += part.postings.length(item)
    for part in index.parts:
        found[LITTER] += part.vectors.litter() + part.postings.litter()
    found[MARKS] += stray_marks(live.marks)
    if live.pool is not None:
        found[POOL] += stray_lots(live.pool, users)
    for rows in (histories.baskets, histories.items, live.marks.levels):
        found[LITTER] += (<Rows> rows).litter()
    for rows in (live.items, live.gone):  # of an event that is over
        found[LITTER] += (<Rows> rows).litter() + (<Rows> rows).length(0)
    return found


cdef Py_ssize_t stray_lots(Pool pool, Py_ssize_t users) except -1:
    """How many places in the line for the pool are too many for so many users, or hold something behind its end."""
    cdef Py_ssize_t place, count = abs(pool.count - users)
    for place in range(pool.count, pool.user_room):
        count += pool.line[place] != 0
    return count


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
