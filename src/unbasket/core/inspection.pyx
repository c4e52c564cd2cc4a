"""What would betray a change of one user that was not carried through: places that contradict the history.

Nothing here trusts what events keep up to date. A vector is folded again from the start of the history, without marks;
the users of an item are searched one by one; the crowd's sums are added up again from its members' vectors.
"""

from libc.stdint cimport int64_t, uint32_t

from unbasket.core.buffers cimport allocated, give_back
from unbasket.core.crowd cimport Crowd
from unbasket.core.fold cimport fold_group, replay
from unbasket.core.history cimport Histories, History
from unbasket.core.index cimport Index, magnitude, magnitude_end
from unbasket.core.live cimport Live
from unbasket.core.marks cimport Mark, Marks, SavedLevel
from unbasket.core.part cimport Part, Posting
from unbasket.core.pool cimport Pool
from unbasket.core.questions cimport rounded
from unbasket.core.space cimport FoldSpace
from unbasket.core.vector cimport Entry, Vector

# The places that are inspected; `inspection.pxd` has their numbers. The last is only looked at in a `survey`.
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
    found = [0] * PLACE_COUNT
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
