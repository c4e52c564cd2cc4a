"""The records of all users at once: counts and sums against what is counted, and records of nobody.

Most of it goes by pieces. What a piece says holds at any moment between two events, so there may be events between two.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.index.hubs cimport Hubs
from unbasket.core.model.history cimport Histories
from unbasket.core.index.index cimport NORM_BINS, Index
from unbasket.core.check.invariants cimport (
    CROWD,
    ENTRIES,
    HISTORY,
    ITEM_COUNTS,
    LITTER,
    MAGNITUDE_COUNTS,
    MARKS,
    PLACE_COUNT,
    POOL,
    SLOT,
    chain_faults,
    hubs_faults,
    is_littered,
    is_misplaced,
    level_of,
    misplaced,
    owns,
    shard_at,
)
from unbasket.core.index.live_index cimport LiveIndex
from unbasket.core.model.checkpoints cimport Checkpoint, Checkpoints
from unbasket.core.index.shard cimport Shard, Posting
from unbasket.core.index.pool cimport Pool
from unbasket.core.memory.jagged cimport JaggedArray

cdef enum:
    RECORDS = 1 << 16  # that a piece looks at, in a millisecond or so


def slot_faults(LiveIndex live, Py_ssize_t first):
    """How many facts about slots, from one on, contradict vectors and owners, by `STRUCTURES`; and where to go on.

    Like all pieces, it ends when it has looked at some `RECORDS`; the last says that it goes on at -1.
    """
    cdef Index index = live.index
    cdef Py_ssize_t slot, row, user, looked = 0
    cdef Shard shard
    found = [0] * PLACE_COUNT
    for slot in range(first, index.slot_end):
        if looked >= RECORDS:
            return found, slot
        shard, row = shard_at(index, slot), index.row_of(slot)
        user = shard.owner[row]
        found[ENTRIES] += misplaced(shard, row)
        if shard.norm[row] != 0:
            found[SLOT] += user >= index.user_room or index.slot_of(user) != slot
        else:
            found[SLOT] += is_littered(index, slot)
        looked += 1 + shard.vectors.length(row)
    return found, -1


def entry_strays(LiveIndex live, Py_ssize_t first):
    """How many entries under items, from one on, are of a row that is nobody's, by `STRUCTURES`; and where to go on."""
    cdef Index index = live.index
    cdef Py_ssize_t item, i, row, looked = 0
    cdef Posting *postings
    cdef Shard shard
    found = [0] * PLACE_COUNT
    for item in range(first, index.item_room):
        if looked >= RECORDS:
            return found, item
        for shard in index.shards:
            postings = <Posting *> shard.postings.first(item)
            for i in range(shard.postings.length(item)):
                row = postings[i].row
                found[ENTRIES] += row >= shard.end or shard.norm[row] == 0
            looked += 1 + shard.postings.length(item)
    return found, -1


def shard_faults(LiveIndex live, Py_ssize_t number):
    """Whether a shard has as many entries in vectors as under items, by `STRUCTURES`; and where to go on."""
    cdef Index index = live.index
    cdef Py_ssize_t i, entries = 0
    found = [0] * PLACE_COUNT
    if number >= len(index.shards):
        return found, -1
    cdef Shard shard = index.shards[number]
    for i in range(shard.end):
        entries += shard.vectors.length(i)
    for i in range(index.item_room):
        entries -= shard.postings.length(i)
    found[ENTRIES] = abs(entries)
    return found, number + 1


def total_faults(LiveIndex live):
    """How many counts and sums over all users contradict what is counted, by `STRUCTURES`: a pass over all norms."""
    cdef Index index = live.index
    cdef Shard shard
    cdef Py_ssize_t row, i, user, empty = 0
    cdef int64_t *population = <int64_t *> allocated(NORM_BINS, sizeof(int64_t))
    found = [0] * PLACE_COUNT
    for shard in index.shards:
        for row in range(shard.end):
            population[level_of(shard.norm[row])] += shard.norm[row] > 0
            empty += shard.norm[row] == 0
    for i in range(NORM_BINS):
        found[MAGNITUDE_COUNTS] += population[i] != index.norm_histogram[i]
    give_back(population, NORM_BINS * sizeof(int64_t))
    found[SLOT] = chain_faults(index, empty)
    for user in range(index.user_room):
        i = index.slot_of(user)
        found[SLOT] += i >= 0 and not owns(index, user, i)
    found[CROWD] = hubs_faults(index, range(index.hubs.item_room)) + member_faults(index)
    found[POOL] = 0 if live.pool is None else order_faults(live.pool)
    return found


cdef Py_ssize_t order_faults(Pool pool) except -1:
    """How many users in the line for the pool are not where their lots say."""
    cdef Py_ssize_t place, above, count = 0
    for place in range(pool.count):
        count += pool.positions[pool.heaps[place]] != place + 1
        if place < pool.size:
            above = (place - 1) // 2 if place else place
            count += pool.is_before(pool.heaps[above], pool.heaps[place])
        else:
            above = pool.size + (place - pool.size - 1) // 2 if place > pool.size else 0
            count += pool.is_before(pool.heaps[place], pool.heaps[above])
    return count


cdef Py_ssize_t member_faults(Index index) except -1:
    """How many members of the hubs do not bear their number, or how many slots bear one though they are no members."""
    cdef Hubs hubs = index.hubs
    cdef Shard shard
    cdef Py_ssize_t i, row, slot, members = 0, count = 0
    for shard in index.shards:
        for row in range(shard.end):
            members += shard.hub_number[row] != 0
    for i in range(hubs.hub_count):
        slot = hubs.slots[i]
        count += slot >= index.slot_end or shard_at(index, slot).hub_number[index.row_of(slot)] != i + 1
    return count + (members != hubs.hub_count)


def item_count_faults(LiveIndex live):
    """How many items are not counted as often as they are in baskets, by `STRUCTURES`: a pass over all histories."""
    found = [0] * PLACE_COUNT
    found[ITEM_COUNTS] = recount_faults(live.histories)
    return found


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


def user_strays(LiveIndex live, list names, Py_ssize_t first):
    """How many records, from a user's on, are of a user who is not there, by `STRUCTURES`; and where to go on.

    `names` are the ids of those who have a code; one that is not in use has an empty name.
    """
    cdef Histories histories = live.histories
    cdef Index index = live.index
    cdef Pool pool = live.pool
    cdef Py_ssize_t user, room = max(histories.baskets.count, index.user_room, live.checkpoints.user_room)
    found = [0] * PLACE_COUNT
    if pool is not None:
        room = max(room, pool.user_room)
    for user in range(first, min(first + RECORDS, room)):
        if user < len(names) and names[user] != "":
            continue
        if user < histories.baskets.count:
            found[HISTORY] += histories.baskets.length(user) + histories.items.length(user)
        found[SLOT] += user < index.user_room and index.slot_of(user) >= 0
        found[MARKS] += user < live.checkpoints.user_room and live.checkpoints.newest[user] != 0
        found[POOL] += pool is not None and user < pool.user_room and is_misplaced(pool, user, False)
    return found, first + RECORDS if first + RECORDS < room else -1


def strays(LiveIndex live, Py_ssize_t users, list items):
    """How many records are of an item that is not there, or of no user's, by `STRUCTURES`; and how many were not wiped.

    That is, with so many users, and items of these names.
    """
    cdef Histories histories = live.histories
    cdef Index index = live.index
    cdef Py_ssize_t item
    cdef Shard shard
    found = [0] * PLACE_COUNT
    for item in range(index.item_room):
        if item >= len(items) or items[item] == "":
            found[ITEM_COUNTS] += histories.popularity[item] != 0
            found[CROWD] += index.hubs.sums[item] != 0
            for shard in index.shards:
                found[ENTRIES] += shard.postings.length(item)
    for shard in index.shards:
        found[LITTER] += shard.vectors.residue() + shard.postings.residue()
    found[MARKS] += stray_marks(live.checkpoints)
    if live.pool is not None:
        found[POOL] += stray_lots(live.pool, users)
    for rows in (histories.baskets, histories.items, live.checkpoints.levels):
        found[LITTER] += (<JaggedArray> rows).residue()
    for rows in (live.items, live.removed):  # of an event that is over
        found[LITTER] += (<JaggedArray> rows).residue() + (<JaggedArray> rows).length(0)
    return found


cdef Py_ssize_t stray_lots(Pool pool, Py_ssize_t users) except -1:
    """How many places in the line for the pool are too many for so many users, or hold something behind its end."""
    cdef Py_ssize_t place, count = abs(pool.count - users)
    for place in range(pool.count, pool.user_room):
        count += pool.heaps[place] != 0
    return count


cdef Py_ssize_t stray_marks(Checkpoints checkpoints) except -1:
    """How many checkpoints are not exactly one user's or unused, or are unused and say something of a history."""
    cdef uint8_t *seen = <uint8_t *> allocated(checkpoints.size, sizeof(uint8_t))
    cdef Py_ssize_t user, checkpoint, count = 0
    cdef Checkpoint *unused
    for user in range(checkpoints.user_room):
        checkpoint = checkpoints.newest[user]
        while checkpoint != 0 and not seen[checkpoint]:
            seen[checkpoint] = True
            checkpoint = checkpoints.table[checkpoint].older
        count += checkpoint != 0
    checkpoint = checkpoints.unused
    while checkpoint != 0 and not seen[checkpoint]:
        seen[checkpoint] = True
        unused = &checkpoints.table[checkpoint]
        count += unused.baskets != 0 or unused.items != 0 or unused.groups != 0 or checkpoints.levels.length(checkpoint) != 0
        checkpoint = unused.older
    count += checkpoint != 0
    for checkpoint in range(1, checkpoints.size):
        count += not seen[checkpoint]
    give_back(seen, checkpoints.size * sizeof(uint8_t))
    return count
