"""Invariants: every derived structure must agree with the histories, and no record may be orphaned.

The checks don't trust anything that events keep up to date. A vector is folded again from the start of the history,
without checkpoints; the users of an item are searched one by one; the hubs' sums are added up again from their vectors.

Each check returns the number of faults by structure, in the order of `STRUCTURES`. Most checks of all users go in
steps: a step returns its faults, and where the next one starts (-1: that was the last). An invariant holds at any
moment between two events, so events may come between two steps.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.index.hubs cimport Hubs
from unbasket.core.model.fold cimport FoldWorkspace, Vector, VectorEntry, fold_group, replay, rounded, scaled_weight
from unbasket.core.model.history cimport Histories, History
from unbasket.core.model.learned cimport LearnedSums, Regression, regression_of
from unbasket.core.index.index cimport NORM_BINS, Index, norm_bin, norm_bin_end
from unbasket.core.index.live_index cimport LiveIndex
from unbasket.core.model.checkpoints cimport Checkpoint, Checkpoints, SavedLevel
from unbasket.core.index.shard cimport Shard, Posting
from unbasket.core.index.pool cimport Pool

cdef enum:  # positions in `STRUCTURES`
    HISTORY, SLOT, VECTOR, POSTINGS, NORM, NORM_HISTOGRAM
    HUBS, CHECKPOINTS, ITEM_COUNTS, POOL, LEARNED_SUMS, RESIDUE, STRUCTURE_COUNT

cdef enum:
    RECORDS = 1 << 16  # that a step checks, in a millisecond or so

STRUCTURES = (
    "the history",
    "the slot",
    "the vector",
    "the postings",
    "the norm",
    "the norm histogram",
    "the hubs",
    "the checkpoints",
    "the item counts",
    "the pool",
    "the learned sums",
    "residue in freed memory",
)


# One user ---------------------------------------------------------------------------------------------------------


def trace(LiveIndex live, Py_ssize_t user):
    """Return where the user's data is, to check these locations after a forget.

    For each of the user's items the number of other users' baskets that have it; the bin of the norm in the histogram;
    and the slot (-1: the user has none).
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
    return elsewhere, bin_of(norm), slot


cdef Shard shard_at(Index index, Py_ssize_t slot):
    return index.shards[slot // index.shard_size]


cdef bint owns(Index index, Py_ssize_t user, Py_ssize_t slot):
    return 0 <= slot < index.slot_end and shard_at(index, slot).owner[index.row_of(slot)] == user


cdef Py_ssize_t bin_of(int64_t norm) noexcept nogil:
    return norm_bin(norm) if norm > 0 else 0


def user_faults(
    LiveIndex live, FoldWorkspace space, Py_ssize_t user, dict elsewhere, Py_ssize_t old_bin, Py_ssize_t old_slot
):
    """Count the facts about a user that contradict the history; the last three arguments are the user's `trace`.

    The expected state is that of a fold of the history from the start: nothing at all without a history, and nothing in
    the index for a user outside the pool. The cost is a pass over the users of these items, over all norms and over the
    hubs' vectors: less than a query.
    """
    cdef Index index = live.index
    cdef History history
    cdef Vector fresh
    cdef SlotCounts counts
    cdef Py_ssize_t slot = index.slot_of(user)
    found = [0] * STRUCTURE_COUNT
    found[HISTORY] = is_torn(live.histories, user)
    found[SLOT] = slot >= 0 and not owns(index, user, slot)
    if found[HISTORY] or found[SLOT]:
        return found
    live.histories.of(user, &history)
    space.widen(live.histories.item_room)
    replay(&history, live.rule, space)
    found[LEARNED_SUMS] = live.sums is not None and not is_kept(live.sums, user, regression_of(live.rule, space))
    fresh = rounded(space, live.rule)
    weights = weights_of(fresh.entries, fresh.length) if live.in_pool(user) else {}
    norm = sum([weight * weight for weight in weights.values()])
    counts = count_slots(index, old_bin, bin_of(norm))
    found[SLOT] = ((slot >= 0) != (norm > 0)) + free_list_faults(index, counts.empty)
    if slot >= 0:
        found[VECTOR] = vector_faults(index, slot, weights)
        found[NORM] = shard_at(index, slot).norm[index.row_of(slot)] != norm
        found[VECTOR] += index.scale(slot) != fresh.scale
    for each in {slot, old_slot} - {-1}:
        held = weights if each == slot else weights_of(index.vector(each), index.length(each))
        found[POSTINGS] += posting_faults(index, each, elsewhere, held)
        found[HUBS] += membership_faults(index, each)
        found[SLOT] += has_residue(index, each)
    found[NORM_HISTOGRAM] = counts.old != index.norm_histogram[old_bin]
    found[NORM_HISTOGRAM] += counts.new != index.norm_histogram[bin_of(norm)]
    found[HUBS] += hubs_faults(index, list(elsewhere))
    found[CHECKPOINTS] = checkpoint_faults(live, space, user)
    found[ITEM_COUNTS] = item_faults(live.histories, user, elsewhere)
    found[POOL] = 0 if live.pool is None else is_misplaced_in_pool(live.pool, user, history.length > 0)
    return found


cdef bint is_kept(LearnedSums sums, Py_ssize_t user, Regression regression) noexcept:
    """Return whether the learned sums keep this of a user; of one without a history, nothing."""
    if sums.histories.baskets.length(user) == 0:
        return not sums.counts(user) and sums.users[user].hits == 0
    return sums.users[user].hits == regression.hits and sums.users[user].squares == regression.squares + 1


cdef bint is_misplaced_in_pool(Pool pool, Py_ssize_t user, bint is_there) except -1:
    """Return whether a user is missing in the pool's order, on the wrong side of its border, or listed after removal."""
    cdef Py_ssize_t position = pool.positions[user]
    if not is_there or not 0 < position <= pool.count or pool.heaps[position - 1] != user:
        return is_there or position != 0 or pool.priorities[user] != 0
    if pool.count <= pool.size:
        return False
    if position <= pool.size:
        return pool.is_before(pool.heaps[pool.size], <uint32_t> user)
    return pool.is_before(<uint32_t> user, pool.heaps[0])


cdef dict weights_of(const VectorEntry *entries, Py_ssize_t length):
    cdef Py_ssize_t i
    return {entries[i].item: entries[i].weight for i in range(length)}


cdef bint has_residue(Index index, Py_ssize_t slot):
    """Return whether a slot without a user still holds something."""
    cdef Shard shard = shard_at(index, slot)
    cdef Py_ssize_t row = index.row_of(slot), owner = shard.owner[row]
    if owner < index.user_room and index.slot_of(owner) == slot:
        return False
    return shard.norm[row] != 0 or shard.scale[row] != 0 or shard.hub_number[row] != 0 or shard.vectors.length(row) != 0


cdef bint is_torn(Histories histories, Py_ssize_t user) except -1:
    """Return whether a user's baskets and the list of their items contradict each other."""
    cdef History history
    cdef Py_ssize_t i, items = 0
    histories.of(user, &history)
    for i in range(history.length):
        items += history.baskets[i].size
    return items != histories.items.length(user)


cdef Py_ssize_t vector_faults(Index index, Py_ssize_t slot, dict weights) except -1:
    """Count the weights that differ in a vector of the index."""
    held = weights_of(index.vector(slot), index.length(slot))
    return sum([held.get(item) != weight for item, weight in weights.items()]) + abs(index.length(slot) - len(weights))


cdef Py_ssize_t posting_faults(Index index, Py_ssize_t slot, dict items, dict weights) except -1:
    """Count the wrong postings of a slot: in number, weight, or position."""
    cdef Shard shard = shard_at(index, slot)
    cdef Py_ssize_t row = index.row_of(slot), position, times, count = 0
    cdef Posting *postings
    cdef uint32_t item, weight
    for item in items:
        weight = weights.get(item, 0)
        postings = <Posting *> shard.postings.first(item)
        times = 0
        for position in range(shard.postings.length(item)):
            if postings[position].row == row:
                times += 1
                count += postings[position].weight != weight
        count += times != (weight != 0)
    return count + misplaced_postings(shard, row)


cdef Py_ssize_t misplaced_postings(Shard shard, Py_ssize_t row) except -1:
    """Count the entries of a vector whose posting is not where they say."""
    cdef VectorEntry *vector = shard.vector(row)
    cdef Posting *postings
    cdef Py_ssize_t i, count = 0
    for i in range(shard.vectors.length(row)):
        postings = <Posting *> shard.postings.first(vector[i].item)
        count += vector[i].posting >= shard.postings.length(vector[i].item) or postings[vector[i].posting].row != row
    return count


cdef struct SlotCounts:
    Py_ssize_t empty  # without a user
    Py_ssize_t old, new  # with a norm in either of two bins


cdef SlotCounts count_slots(Index index, Py_ssize_t old, Py_ssize_t new):
    """Count the empty slots, and those with a norm in one of two bins: one pass over all norms."""
    cdef SlotCounts counts = SlotCounts(0, 0, 0)
    cdef int64_t old_start = bin_start(old), old_end = norm_bin_end(old)
    cdef int64_t new_start = bin_start(new), new_end = norm_bin_end(new)
    cdef Shard shard
    cdef int64_t *norms
    cdef Py_ssize_t row
    for shard in index.shards:
        norms = shard.norm
        for row in range(shard.end):
            counts.empty += norms[row] == 0
            counts.old += old_start <= norms[row] < old_end
            counts.new += new_start <= norms[row] < new_end
    return counts


cdef int64_t bin_start(Py_ssize_t number) noexcept nogil:
    return norm_bin_end(number - 1) if number else 1


cdef Py_ssize_t free_list_faults(Index index, Py_ssize_t empty) except -1:
    """Return whether the free list differs from the empty slots."""
    cdef Py_ssize_t slot, unused = index.unused
    while 0 < unused <= index.slot_end and empty >= 0:  # a cycle ends too
        empty -= 1
        slot = unused - 1
        if shard_at(index, slot).norm[index.row_of(slot)] != 0:
            return 1
        unused = shard_at(index, slot).owner[index.row_of(slot)]
    return empty != 0 or unused != 0


cdef Py_ssize_t membership_faults(Index index, Py_ssize_t slot) except -1:
    """Count the faults of a slot among the hubs: it must be there once, at its index, or not at all."""
    cdef Hubs hubs = index.hubs
    cdef Shard shard = shard_at(index, slot)
    cdef Py_ssize_t i, times = 0, number = shard.hub_number[index.row_of(slot)]
    for i in range(hubs.hub_count):
        times += hubs.slots[i] == slot
    if number == 0:
        return times
    return times != 1 or number > hubs.hub_count or hubs.slots[number - 1] != slot


cdef Py_ssize_t hubs_faults(Index index, items) except -1:
    """Count the hubs' sums of these items, and totals, that differ from the sums of the hubs' vectors."""
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
            sums[member[j].item] += scaled_weight(member[j].weight, index.scale(slot))
    for i in items:
        count += hubs.sums[i] != sums[i] or not is_listed(hubs, i, sums[i])
    give_back(sums, hubs.item_room * sizeof(int64_t))
    for i in range(1, hubs.item_count):
        count += hubs.heap[(i - 1) >> 1].total < hubs.heap[i].total
    return count + (records != hubs.entry_count)


cdef bint is_listed(Hubs hubs, Py_ssize_t item, int64_t total) noexcept:
    """Return whether the hubs' heap has an item with this sum; an item without a sum must not be there."""
    cdef Py_ssize_t position = hubs.heap_position[item]
    if position == 0 or total == 0:
        return position == 0 and total == 0
    if position > hubs.item_count:
        return False
    return hubs.heap[position - 1].item == item and hubs.heap[position - 1].total == total


def checkpoint_faults(LiveIndex live, FoldWorkspace space, Py_ssize_t user):
    """Count the user's checkpoints that differ from a fold from the start of the history."""
    cdef History history
    cdef Checkpoint state = Checkpoint(0, 0, 0, 0)
    cdef Py_ssize_t wrong = 0, checked = 0, number
    cdef list checkpoints = checkpoints_of(live.checkpoints, user)
    if not checkpoints:
        return 0
    live.histories.of(user, &history)
    space.widen(live.histories.item_room)
    while state.baskets < history.length:
        number = checkpoints[checked] if checked < len(checkpoints) else 0
        if number != 0 and live.checkpoints.table[number].baskets == state.baskets:
            wrong += not is_state(live.checkpoints, number, &state, space)
            checked += 1
        fold_group(&history, &state, live.rule, space)
    space.clean()
    return wrong + len(checkpoints) - checked


cdef list checkpoints_of(Checkpoints checkpoints, Py_ssize_t user):
    """Return the user's checkpoints, oldest first; a cycle ends somewhere."""
    cdef Py_ssize_t checkpoint = checkpoints.newest[user]
    cdef list numbers = []
    while checkpoint != 0 and len(numbers) < checkpoints.size:
        numbers.append(checkpoint)
        checkpoint = checkpoints.table[checkpoint].older
    numbers.reverse()
    return numbers


cdef bint is_state(Checkpoints checkpoints, Py_ssize_t number, const Checkpoint *state, FoldWorkspace space) except -1:
    """Return whether a checkpoint equals the state in the workspace."""
    cdef SavedLevel *saved = <SavedLevel *> checkpoints.levels.first(number)
    cdef Py_ssize_t i
    if checkpoints.table[number].items != state.items or checkpoints.table[number].groups != state.groups:
        return False
    if checkpoints.levels.length(number) != space.count:
        return False
    for i in range(space.count):
        level = space.levels[saved[i].item]
        if level.last == 0 or level.last != saved[i].last or level.value != saved[i].value:
            return False
    return True


cdef Py_ssize_t item_faults(Histories histories, Py_ssize_t user, dict elsewhere) except -1:
    """Count the items whose count is not that of the user's baskets and those of others together."""
    cdef uint32_t *bought = <uint32_t *> histories.items.first(user)
    cdef Py_ssize_t i
    counts = dict(elsewhere)
    for i in range(histories.items.length(user)):
        counts[bought[i]] = counts.get(bought[i], 0) + 1
    return sum([histories.popularity[<Py_ssize_t> item] != count for item, count in counts.items()])


# All users --------------------------------------------------------------------------------------------------------


def slot_faults(LiveIndex live, Py_ssize_t first):
    """Count the slots, from `first` on, that contradict their vector or their user: a step."""
    cdef Index index = live.index
    cdef Py_ssize_t slot, row, user, checked = 0
    cdef Shard shard
    found = [0] * STRUCTURE_COUNT
    for slot in range(first, index.slot_end):
        if checked >= RECORDS:
            return found, slot
        shard, row = shard_at(index, slot), index.row_of(slot)
        user = shard.owner[row]
        found[POSTINGS] += misplaced_postings(shard, row)
        if shard.norm[row] != 0:
            found[SLOT] += user >= index.user_room or index.slot_of(user) != slot
        else:
            found[SLOT] += has_residue(index, slot)
        checked += 1 + shard.vectors.length(row)
    return found, -1


def posting_orphans(LiveIndex live, Py_ssize_t first):
    """Count the postings, of items from `first` on, that belong to no user: a step."""
    cdef Index index = live.index
    cdef Py_ssize_t item, i, row, checked = 0
    cdef Posting *postings
    cdef Shard shard
    found = [0] * STRUCTURE_COUNT
    for item in range(first, index.item_room):
        if checked >= RECORDS:
            return found, item
        for shard in index.shards:
            postings = <Posting *> shard.postings.first(item)
            for i in range(shard.postings.length(item)):
                row = postings[i].row
                found[POSTINGS] += row >= shard.end or shard.norm[row] == 0
            checked += 1 + shard.postings.length(item)
    return found, -1


def shard_faults(LiveIndex live, Py_ssize_t number):
    """Compare the number of postings of a shard with that of the entries of its vectors: a step."""
    cdef Index index = live.index
    cdef Py_ssize_t i, entries = 0
    found = [0] * STRUCTURE_COUNT
    if number >= len(index.shards):
        return found, -1
    cdef Shard shard = index.shards[number]
    for i in range(shard.end):
        entries += shard.vectors.length(i)
    for i in range(index.item_room):
        entries -= shard.postings.length(i)
    found[POSTINGS] = abs(entries)
    return found, number + 1


def total_faults(LiveIndex live):
    """Count the wrong counts and sums over all users: a pass over all norms."""
    cdef Index index = live.index
    cdef Shard shard
    cdef Py_ssize_t row, i, user, empty = 0
    cdef int64_t *population = <int64_t *> allocated(NORM_BINS, sizeof(int64_t))
    found = [0] * STRUCTURE_COUNT
    for shard in index.shards:
        for row in range(shard.end):
            population[bin_of(shard.norm[row])] += shard.norm[row] > 0
            empty += shard.norm[row] == 0
    for i in range(NORM_BINS):
        found[NORM_HISTOGRAM] += population[i] != index.norm_histogram[i]
    give_back(population, NORM_BINS * sizeof(int64_t))
    found[SLOT] = free_list_faults(index, empty)
    for user in range(index.user_room):
        i = index.slot_of(user)
        found[SLOT] += i >= 0 and not owns(index, user, i)
    found[HUBS] = hubs_faults(index, range(index.hubs.item_room)) + member_faults(index)
    found[POOL] = 0 if live.pool is None else heap_faults(live.pool)
    return found


cdef Py_ssize_t heap_faults(Pool pool) except -1:
    """Count the users in the pool's two heaps that are not where their priority says."""
    cdef Py_ssize_t position, above, count = 0
    for position in range(pool.count):
        count += pool.positions[pool.heaps[position]] != position + 1
        if position < pool.size:
            above = (position - 1) // 2 if position else position
            count += pool.is_before(pool.heaps[above], pool.heaps[position])
        else:
            above = pool.size + (position - pool.size - 1) // 2 if position > pool.size else 0
            count += pool.is_before(pool.heaps[position], pool.heaps[above])
    return count


cdef Py_ssize_t member_faults(Index index) except -1:
    """Count the hubs whose slot has another index, and slots that have an index but are not hubs."""
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
    """Count the items whose count is not that of the baskets that have them: a pass over all histories."""
    cdef Histories histories = live.histories
    cdef int64_t *counts = <int64_t *> allocated(histories.item_room, sizeof(int64_t))
    cdef uint32_t *items
    cdef Py_ssize_t user, i
    found = [0] * STRUCTURE_COUNT
    for user in range(histories.items.count):
        items = <uint32_t *> histories.items.first(user)
        for i in range(histories.items.length(user)):
            counts[items[i]] += 1
    for i in range(histories.item_room):
        found[ITEM_COUNTS] += counts[i] != histories.popularity[i]
    give_back(counts, histories.item_room * sizeof(int64_t))
    return found


def recount(LiveIndex live, LearnedSums sums, FoldWorkspace space, Py_ssize_t first):
    """Add the shares of users from `first` on to sums that lack them, folded from the start: a step.

    Returns where the next step starts, or -1. The sums follow events that come between two steps.
    """
    cdef Histories histories = live.histories
    cdef History history
    cdef Py_ssize_t user, checked = 0
    cdef Vector vector
    cdef Regression regression
    space.widen(histories.item_room)
    for user in range(first, histories.baskets.count):
        if checked >= RECORDS:
            return user
        histories.of(user, &history)
        if history.length > 0 and not sums.counts(user):
            replay(&history, live.rule, space)
            regression = regression_of(live.rule, space)
            vector = rounded(space, live.rule)
            sums.add(user, vector.entries, vector.length, regression)
        checked += 1 + histories.items.length(user)
    return -1


def sums_faults(LiveIndex live, LearnedSums sums):
    """Count the learned sums that differ from others, by a recount."""
    cdef Py_ssize_t item, user
    found = [0] * STRUCTURE_COUNT
    found[LEARNED_SUMS] = live.sums.sums([])[0] != sums.sums([])[0]
    for item in range(min(live.sums.item_room, sums.item_room)):
        found[LEARNED_SUMS] += live.sums.items[item].buyers != sums.items[item].buyers
        found[LEARNED_SUMS] += live.sums.items[item].weight != sums.items[item].weight
    for user in range(min(live.sums.user_room, sums.user_room)):
        found[LEARNED_SUMS] += live.sums.users[user].hits != sums.users[user].hits
        found[LEARNED_SUMS] += live.sums.users[user].squares != sums.users[user].squares
    return found


def user_orphans(LiveIndex live, list names, Py_ssize_t first):
    """Count the records of codes from `first` on that no user has: a step.

    `names` are the ids by code; a code that is not in use has an empty name.
    """
    cdef Histories histories = live.histories
    cdef Index index = live.index
    cdef Pool pool = live.pool
    cdef Py_ssize_t user, room = max(histories.baskets.count, index.user_room, live.checkpoints.user_room)
    found = [0] * STRUCTURE_COUNT
    if pool is not None:
        room = max(room, pool.user_room)
    for user in range(first, min(first + RECORDS, room)):
        if user < len(names) and names[user] != "":
            continue
        if user < histories.baskets.count:
            found[HISTORY] += histories.baskets.length(user) + histories.items.length(user)
        found[SLOT] += user < index.user_room and index.slot_of(user) >= 0
        found[CHECKPOINTS] += user < live.checkpoints.user_room and live.checkpoints.newest[user] != 0
        found[POOL] += pool is not None and user < pool.user_room and is_misplaced_in_pool(pool, user, False)
        found[LEARNED_SUMS] += live.sums is not None and live.sums.counts(user)
    return found, first + RECORDS if first + RECORDS < room else -1


def orphans(LiveIndex live, Py_ssize_t users, list items):
    """Count the records of items that are gone, orphaned checkpoints and positions of the pool, and residue.

    `users` is the number of users, `items` are the ids by code.
    """
    cdef Histories histories = live.histories
    cdef Index index = live.index
    cdef Py_ssize_t item
    cdef Shard shard
    found = [0] * STRUCTURE_COUNT
    for item in range(index.item_room):
        if item >= len(items) or items[item] == "":
            found[ITEM_COUNTS] += histories.popularity[item] != 0
            found[HUBS] += index.hubs.sums[item] != 0
            if live.sums is not None:
                found[LEARNED_SUMS] += live.sums.items[item].buyers != 0 or live.sums.items[item].weight != 0
            for shard in index.shards:
                found[POSTINGS] += shard.postings.length(item)
    for shard in index.shards:
        found[RESIDUE] += shard.vectors.residue() + shard.postings.residue()
    found[CHECKPOINTS] += checkpoint_orphans(live.checkpoints)
    if live.pool is not None:
        found[POOL] += pool_orphans(live.pool, users)
    for rows in (histories.baskets, histories.items, live.checkpoints.levels):
        found[RESIDUE] += (<JaggedArray> rows).residue()
    for rows in (live.items, live.removed, live.rounded, index.hubs.unsettled):  # of the last event
        found[RESIDUE] += (<JaggedArray> rows).residue() + (<JaggedArray> rows).length(0)
    return found


cdef Py_ssize_t pool_orphans(Pool pool, Py_ssize_t users) except -1:
    """Count the positions in the pool's order that are more than the users, or hold something behind its end."""
    cdef Py_ssize_t position, count = abs(pool.count - users)
    for position in range(pool.count, pool.user_room):
        count += pool.heaps[position] != 0
    return count


cdef Py_ssize_t checkpoint_orphans(Checkpoints checkpoints) except -1:
    """Count the checkpoints that are not exactly one user's or free, and free ones that are not zero."""
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
        count += unused.baskets != 0 or unused.items != 0 or unused.groups != 0
        count += checkpoints.levels.length(checkpoint) != 0
        checkpoint = unused.older
    count += checkpoint != 0
    for checkpoint in range(1, checkpoints.size):
        count += not seen[checkpoint]
    give_back(seen, checkpoints.size * sizeof(uint8_t))
    return count
