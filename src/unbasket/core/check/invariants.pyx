"""What would betray a change of one user that was not carried through: places that contradict the history.

Nothing here trusts what events keep up to date. A vector is folded again from the start of the history, without checkpoints;
the users of an item are searched one by one; the hubs's sums are added up again from its members' vectors.
"""

from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.index.hubs cimport Hubs
from unbasket.core.model.fold cimport fold_group, replay
from unbasket.core.model.history cimport Histories, History
from unbasket.core.index.index cimport Index, norm_bin, norm_bin_end
from unbasket.core.index.live_index cimport LiveIndex
from unbasket.core.model.checkpoints cimport Checkpoint, Checkpoints, SavedLevel
from unbasket.core.index.shard cimport Shard, Posting
from unbasket.core.index.pool cimport Pool
from unbasket.core.model.fold cimport rounded
from unbasket.core.model.fold cimport FoldWorkspace
from unbasket.core.model.fold cimport VectorEntry, Vector

# The places that are inspected; `inspection.pxd` has their numbers. The last is only looked at in a `survey`.
STRUCTURES = (
    "the history",
    "the slot",
    "the vector",
    "the entries under items",
    "the norm",
    "the counts of magnitudes",
    "the hubs",
    "the checkpoints",
    "the counts of items",
    "the pool",
    "the places that were left",
)


def trace(LiveIndex live, Py_ssize_t user):
    """Where to look once something of a user is forgotten.

    That is, for each of the user's items, in how many baskets of others it is; the magnitude of the norm; and the slot
    (-1: none).
    """
    cdef Histories histories = live.histories
    cdef uint32_t *bought = <uint32_t *> histories.items.first(user)
    cdef Py_ssize_t slot = live.index.slot_of(user), i
    cdef int64_t norm = 0
    cdef VectorEntry *vector
    elsewhere = {}
    if not owns(live.index, user, slot):
        slot = -1
    if slot >= 0:
        norm = shard_at(live.index, slot).norm[live.index.row_of(slot)]
        vector = live.index.vector(slot)
        for i in range(live.index.length(slot)):
            elsewhere[vector[i].item] = histories.popularity[vector[i].item]
    for i in range(histories.items.length(user)):
        elsewhere[bought[i]] = elsewhere.get(bought[i], histories.popularity[bought[i]]) - 1
    return elsewhere, level_of(norm), slot


cdef Shard shard_at(Index index, Py_ssize_t slot):
    return index.shards[slot // index.shard_size]


cdef bint owns(Index index, Py_ssize_t user, Py_ssize_t slot):
    """Whether a slot is this user's."""
    return 0 <= slot < index.slot_end and shard_at(index, slot).owner[index.row_of(slot)] == user


cdef Py_ssize_t level_of(int64_t norm) noexcept nogil:
    return norm_bin(norm) if norm > 0 else 0


def user_faults(LiveIndex live, FoldWorkspace space, Py_ssize_t user, dict elsewhere, Py_ssize_t level, Py_ssize_t old_slot):
    """How many facts about a user are wrong, by `STRUCTURES`; the last three arguments are the user's `trace`.

    Right is what a fold of the history from the start gives: nothing at all, if there is no history, and nothing in the
    index, if the user is not in the pool. It costs a pass over the users of these items, over all norms and over the
    hubs's vectors: less than a query.
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
        found[NORM] = shard_at(index, slot).norm[index.row_of(slot)] != norm
    for place in {slot, old_slot} - {-1}:
        found[ENTRIES] += entry_faults(index, place, elsewhere, weights if place == slot else held_in(index, place))
        found[CROWD] += membership_faults(index, place)
        found[SLOT] += is_littered(index, place)
    found[MAGNITUDE_COUNTS] = census.old != index.norm_histogram[level]
    found[MAGNITUDE_COUNTS] += census.new != index.norm_histogram[level_of(norm)]
    found[CROWD] += hubs_faults(index, list(elsewhere))
    found[MARKS] = mark_faults(live, space, user)
    found[ITEM_COUNTS] = item_faults(live.histories, user, elsewhere)
    found[POOL] = 0 if live.pool is None else is_misplaced(live.pool, user, history.length > 0)
    return found


cdef bint is_misplaced(Pool pool, Py_ssize_t user, bint is_there) except -1:
    """Whether a user is not in the line for the pool, or on the wrong side of its border; or is, and is gone."""
    cdef Py_ssize_t place = pool.positions[user]
    if not is_there or not 0 < place <= pool.count or pool.heaps[place - 1] != user:
        return is_there or place != 0 or pool.priorities[user] != 0
    if pool.count <= pool.size:
        return False
    if place <= pool.size:
        return pool.is_before(pool.heaps[pool.size], <uint32_t> user)
    return pool.is_before(<uint32_t> user, pool.heaps[0])


cdef dict weights_of(Vector vector):
    cdef Py_ssize_t i
    return {vector.entries[i].item: vector.entries[i].weight for i in range(vector.length)}


cdef dict held_in(Index index, Py_ssize_t slot):
    """What a vector of the index has."""
    cdef VectorEntry *vector = index.vector(slot)
    cdef Py_ssize_t i
    return {vector[i].item: vector[i].weight for i in range(index.length(slot))}


cdef bint is_littered(Index index, Py_ssize_t slot):
    """Whether a slot is nobody's, and holds something."""
    cdef Shard shard = shard_at(index, slot)
    cdef Py_ssize_t row = index.row_of(slot), owner = shard.owner[row]
    if owner < index.user_room and index.slot_of(owner) == slot:
        return False
    return shard.norm[row] != 0 or shard.hub_number[row] != 0 or shard.vectors.length(row) != 0


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
    cdef Shard shard = shard_at(index, slot)
    cdef Py_ssize_t row = index.row_of(slot), place, times, count = 0
    cdef Posting *postings
    cdef uint32_t item, weight
    for item in items:
        weight = weights.get(item, 0)
        postings = <Posting *> shard.postings.first(item)
        times = 0
        for place in range(shard.postings.length(item)):
            if postings[place].row == row:
                times += 1
                count += postings[place].weight != weight
        count += times != (weight != 0)
    return count + misplaced(shard, row)


cdef Py_ssize_t misplaced(Shard shard, Py_ssize_t row) except -1:
    """How many entries of a vector are not where they say under their item."""
    cdef VectorEntry *vector = shard.vector(row)
    cdef Posting *postings
    cdef Py_ssize_t i, count = 0
    for i in range(shard.vectors.length(row)):
        postings = <Posting *> shard.postings.first(vector[i].item)
        count += vector[i].posting >= shard.postings.length(vector[i].item) or postings[vector[i].posting].row != row
    return count


cdef struct Census:
    Py_ssize_t empty, old, new


cdef Census census_of(Index index, Py_ssize_t old, Py_ssize_t new):
    """How many slots are empty, and how many users there are of two magnitudes: one pass over all norms."""
    cdef Census census = Census(0, 0, 0)
    cdef int64_t old_start = norm_bin_start(old), old_end = norm_bin_end(old)
    cdef int64_t new_start = norm_bin_start(new), new_end = norm_bin_end(new)
    cdef Shard shard
    cdef int64_t *norms
    cdef Py_ssize_t row
    for shard in index.shards:
        norms = shard.norm
        for row in range(shard.end):
            census.empty += norms[row] == 0
            census.old += old_start <= norms[row] < old_end
            census.new += new_start <= norms[row] < new_end
    return census


cdef int64_t norm_bin_start(Py_ssize_t level) noexcept nogil:
    """The smallest squared norm of a magnitude."""
    return norm_bin_end(level - 1) if level else 1


cdef Py_ssize_t chain_faults(Index index, Py_ssize_t empty) except -1:
    """Whether the chain of slots that are nobody's has as many as are empty, and only such."""
    cdef Py_ssize_t slot, unused = index.unused
    while 0 < unused <= index.slot_end and empty >= 0:  # a chain that goes in a circle ends too
        empty -= 1
        slot = unused - 1
        if shard_at(index, slot).norm[index.row_of(slot)] != 0:
            return 1
        unused = shard_at(index, slot).owner[index.row_of(slot)]
    return empty != 0 or unused != 0


cdef Py_ssize_t membership_faults(Index index, Py_ssize_t slot) except -1:
    """Whether the hubs has a slot once, under its number there, or not at all."""
    cdef Hubs hubs = index.hubs
    cdef Shard shard = shard_at(index, slot)
    cdef Py_ssize_t i, times = 0, number = shard.hub_number[index.row_of(slot)]
    for i in range(hubs.hub_count):
        times += hubs.slots[i] == slot
    if number == 0:
        return times
    return times != 1 or number > hubs.hub_count or hubs.slots[number - 1] != slot


cdef Py_ssize_t hubs_faults(Index index, items) except -1:
    """How many of the hubs's facts about these items, and of its totals, are not what its members' vectors give."""
    cdef Hubs hubs = index.hubs
    cdef VectorEntry *member
    cdef Py_ssize_t i, j, slot, length, records = 0, count = 0
    cdef int64_t *sums = <int64_t *> allocated(hubs.item_room, sizeof(int64_t))
    for i in range(hubs.hub_count):
        slot = hubs.slots[i]
        if slot >= index.slot_end:
            count += 1
            continue
        member, length = index.vector(slot), index.length(slot)
        records += length
        for j in range(length):
            sums[member[j].item] += member[j].weight
    for i in items:
        count += hubs.sums[i] != sums[i] or not is_listed(hubs, i, sums[i])
    give_back(sums, hubs.item_room * sizeof(int64_t))
    for i in range(1, hubs.item_count):
        count += hubs.heap[(i - 1) >> 1].total < hubs.heap[i].total
    return count + (records != hubs.entry_count)


cdef bint is_listed(Hubs hubs, Py_ssize_t item, int64_t total) noexcept:
    """Whether the hubs's list has an item with this sum; one without a sum is not on it."""
    cdef Py_ssize_t place = hubs.heap_position[item]
    if place == 0 or total == 0:
        return place == 0 and total == 0
    return place <= hubs.item_count and hubs.heap[place - 1].item == item and hubs.heap[place - 1].total == total


def mark_faults(LiveIndex live, FoldWorkspace space, Py_ssize_t user):
    """How many of a user's checkpoints are not the state of a fold from the start at their place."""
    cdef History history
    cdef Checkpoint state = Checkpoint(0, 0, 0, 0)
    cdef Py_ssize_t wrong = 0, checked = 0
    cdef list checkpoints = marks_of(live.checkpoints, user)
    if not checkpoints:
        return 0
    live.histories.of(user, &history)
    space.widen(live.histories.item_room)
    while state.baskets < history.length:
        if checked < len(checkpoints) and live.checkpoints.table[<Py_ssize_t> checkpoints[checked]].baskets == state.baskets:
            wrong += not is_state(live.checkpoints, checkpoints[checked], &state, space)
            checked += 1
        fold_group(&history, &state, live.rule, space)
    space.clean()
    return wrong + len(checkpoints) - checked


cdef list marks_of(Checkpoints checkpoints, Py_ssize_t user):
    """The numbers of a user's checkpoints, oldest first; a chain that goes in a circle ends somewhere."""
    cdef Py_ssize_t checkpoint = checkpoints.newest[user]
    cdef list numbers = []
    while checkpoint != 0 and len(numbers) < checkpoints.size:
        numbers.append(checkpoint)
        checkpoint = checkpoints.table[checkpoint].older
    numbers.reverse()
    return numbers


cdef bint is_state(Checkpoints checkpoints, Py_ssize_t checkpoint, const Checkpoint *state, FoldWorkspace space) except -1:
    """Whether a checkpoint is the state in the work space."""
    cdef SavedLevel *saved = <SavedLevel *> checkpoints.levels.first(checkpoint)
    cdef Py_ssize_t i
    if checkpoints.table[checkpoint].items != state.items or checkpoints.table[checkpoint].groups != state.groups:
        return False
    if checkpoints.levels.length(checkpoint) != space.count:
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
