"""The core's memory as NumPy arrays, for tests: views, to see that nothing is left over, or to do damage that is found.

A view is valid until something is added. Nothing else in the package imports this module.
"""

from cpython.buffer cimport PyBUF_WRITE
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint32_t

import numpy as np

from unbasket.core.model cimport fold
from unbasket.core.index cimport index as indexes
from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.memory.growable cimport GrowableArray
from unbasket.core.index.hubs cimport Hubs
from unbasket.core.model.history cimport Basket, Histories
from unbasket.core.index.index cimport NORM_BINS, SEGMENT, Index
from unbasket.core.index.live_index cimport LiveIndex
from unbasket.core.model.checkpoints cimport Checkpoint, Checkpoints
from unbasket.core.search.knn cimport KnnQuery
from unbasket.core.index.shard cimport Shard
from unbasket.core.index.pool cimport Pool
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.search.search cimport SearchWorkspace
from unbasket.core.model.fold cimport FoldWorkspace
from unbasket.core.model.fold cimport Vector
from unbasket.core.util.topn cimport Candidate, smallest_first

ROW = np.dtype([("first", np.uintp), ("length", np.uint32), ("capacity", np.uint32)])
BASKET = np.dtype(
    {
        "names": ["key", "time", "size", "is_text", "opens"],
        "formats": [np.int64, np.int64, np.uint32, np.uint8, np.uint8],
        "offsets": [0, 8, 16, 20, 21],
        "itemsize": sizeof(Basket),
    }
)
CODE = np.dtype(np.uint32)
ENTRY = np.dtype([("item", np.uint32), ("weight", np.uint32), ("posting", np.uint32)])
POSTING = np.dtype([("row", np.uint32), ("weight", np.uint32)])
LEVEL = np.dtype([("value", np.float64), ("last", np.int32), ("item", np.uint32)])
HUB_SUM = np.dtype([("total", np.int64), ("item", np.uint32), ("", np.uint32)])
MARK = np.dtype([("older", np.intp), ("baskets", np.intp), ("items", np.intp), ("groups", np.intp)])


cdef view(void *memory, Py_ssize_t count, dtype):
    if count == 0:
        return np.zeros(0, dtype)
    cdef Py_ssize_t width = np.dtype(dtype).itemsize
    return np.asarray(PyMemoryView_FromMemory(<char *> memory, count * width, PyBUF_WRITE)).view(dtype)


def rows(JaggedArray rows):
    """Where each row starts, its length and its capacity."""
    return view(rows.rows, rows.count, ROW)


def row(JaggedArray rows, Py_ssize_t row, dtype):
    """The records of a row."""
    return view(rows.first(row), rows.length(row), dtype)


def spare(JaggedArray rows, Py_ssize_t row):
    """The bytes behind the last record of a row that are the row's as well."""
    cdef char *first = <char *> rows.first(row)
    return view(first + rows.length(row) * rows.width, (rows.rows[row].capacity - rows.length(row)) * rows.width, np.uint8)


def free_block(JaggedArray rows, size_t size):
    """The bytes of a block that is not in use, of a size of which some are."""
    cdef void *block = rows.blocks.allocate(size)
    rows.blocks.free(block)
    return view(block, size, np.uint8)


def append(JaggedArray rows, Py_ssize_t row):
    """Add a record at the end of a row."""
    rows.append(row)


def open_gap(JaggedArray rows, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count):
    """Make room for `count` records before `position` of a row."""
    rows.open_gap(row, position, count)


def popularity(Histories histories):
    """In how many baskets each item is."""
    return view(histories.popularity, histories.item_room, np.int64)


def norms(Shard shard):
    """The squared norm of each row."""
    return view(shard.norm, shard.end, np.int64)


def owners(Shard shard):
    """The user of each row; of one that is nobody's, the next such slot plus 1."""
    return view(shard.owner, shard.end, np.uint32)


def hub_numbers(Shard shard):
    """The number in the hubs of each row's user, from 1 on."""
    return view(shard.hub_number, shard.end, np.uint32)


def slots(Index index, Py_ssize_t segment=0):
    """The slot of each user plus 1, for a segment of the users."""
    return view(index.segments[segment], SEGMENT, np.uint32)


def where(Index index, Py_ssize_t user):
    """The shard that a user is in, and the row there."""
    cdef Py_ssize_t slot = index.slot_of(user)
    return index.shards[slot // index.shard_size], slot % index.shard_size


def norm_histogram(Index index):
    """How many users there are of each magnitude."""
    return view(index.norm_histogram, NORM_BINS, np.int64)


def hubs(Hubs hubs):
    """The hubs's arrays by their names; `members` and `heap` with the places that are not in use."""
    return {
        "slots": view(hubs.slots, hubs.hub_room, np.uint32),
        "sums": view(hubs.sums, hubs.item_room, np.int64),
        "heap_position": view(hubs.heap_position, hubs.item_room, np.uint32),
        "heap": view(hubs.heap, hubs.item_room, HUB_SUM),
    }


def pool(Pool pool):
    """The pool's arrays by their names; `line` with the places that are not in use."""
    return {
        "priorities": view(pool.priorities, pool.user_room, np.uint64),
        "positions": view(pool.positions, pool.user_room, np.uint32),
        "heaps": view(pool.heaps, pool.user_room, np.uint32),
    }


def dissolve(Index index):
    """Let the hubs have no members."""
    cdef Py_ssize_t slot
    index.hubs_limit = 0
    for slot in range(index.slot_end):
        index._reconsider(slot)


def newest_marks(Checkpoints checkpoints):
    """The newest checkpoint of each user."""
    return view(checkpoints.newest, checkpoints.user_room, np.int32)


def checkpoints(Checkpoints checkpoints):
    """The table of all checkpoints, used or not."""
    return view(checkpoints.table, checkpoints.size, MARK)


def add_mark(LiveIndex live, Py_ssize_t user, Py_ssize_t baskets, Py_ssize_t items, Py_ssize_t groups):
    """Set a checkpoint that says so, and has no levels."""
    cdef Checkpoint checkpoint = Checkpoint(0, baskets, items, groups)
    live.checkpoints.save(user, &checkpoint, live.space)


def add_basket(Histories histories, Py_ssize_t user, int64_t key, uint32_t item):
    """Put a basket before all others of a user, without anything that follows from it, and without a note of it."""
    cdef Basket basket = Basket(key, 0, 1, False, False)
    notes, histories.notes_changes = histories.notes_changes, False
    histories.insert(user, 0, &basket, &item, 0)
    histories.notes_changes = notes


def put(LiveIndex live, Py_ssize_t user, bint in_index):
    """Put a user's vector into the index, or take it out, whether the user is in the pool or not."""
    if in_index:
        live.checkpoints.peek(live.histories, user, live.rule, live.space)
    live.index.put(user, live.space, live.rule.group_decay)
    live.space.clean()


def refold(LiveIndex live, Py_ssize_t user):
    """A user's vector before rounding, folded from the newest checkpoint on."""
    live.checkpoints.fold(live.histories, user, live.rule, live.space)
    vector = {
        live.space.touched[i]: fold.weight(live.space, live.space.touched[i], live.rule.group_decay)
        for i in range(live.space.count)
    }
    live.space.clean()
    return vector


def is_clean(FoldWorkspace space):
    """Whether nothing is left in the work space of a fold."""
    cdef Py_ssize_t i
    for i in range(space.room):
        if space.levels[i].value != 0.0 or space.levels[i].last != 0 or space.touched[i] != 0:
            return False
    return space.count == 0 and space.groups == 0


def uses_hubs(SearchWorkspace space, Index index, Vector vector, Py_ssize_t user, Py_ssize_t k, GrowableArray order):
    """Whether a recommendation starts from the hubs's sums."""
    cdef KnnQuery query = KnnQuery(vector.entries, vector.length, user, k, order.data)
    space.nearest.find(index, &query, None)
    answer = space.ranking.uses_hubs(index, space.nearest.scan)
    space.nearest.scan.forget()
    return bool(answer)


def power(double base, Py_ssize_t exponent):
    """The base to a whole power, as the fold computes it."""
    return fold.power(base, exponent)


def fixed_point(double value):
    """A weight as a multiple of 2^-24."""
    return fold.fixed_point(value)


def norm_bin(norm):
    """The magnitude of a squared norm."""
    return indexes.norm_bin(norm)


def norm_bin_end(level):
    """The smallest squared norm that is of a larger magnitude."""
    return indexes.norm_bin_end(level)


def smallest(list keys, Py_ssize_t k, const int64_t[::1] order):
    """Return the positions of the k smallest keys, unsorted; ties go by `order`."""
    cdef Py_ssize_t count = len(keys), i
    assert 0 <= k <= count <= len(order), "more keys than orders, or fewer than k"
    if count == 0:
        return []
    cdef Candidate *candidates = <Candidate *> allocated(count, sizeof(Candidate))
    try:
        for i in range(count):
            candidates[i] = Candidate(keys[i], <uint32_t> i, 0)
        smallest_first(candidates, count, k, &order[0])
        return [candidates[i].code for i in range(k)]
    finally:
        give_back(candidates, count * sizeof(Candidate))
