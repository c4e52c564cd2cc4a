"""Views of the core's memory as NumPy arrays, for tests: to find residue, or to do damage that must be found.

A view is valid until something is added. Only tests import this module. `Interrupter` does damage of another kind.
"""

cimport cython

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
from unbasket.core.model.learned cimport LearnedSums
from unbasket.core.index.index cimport NORM_BINS, SEGMENT, Index
from unbasket.core.index.live_index cimport LiveIndex
from unbasket.core.model.checkpoints cimport Checkpoint, Checkpoints
from unbasket.core.search.knn cimport KnnQuery
from unbasket.core.index.shard cimport Shard
from unbasket.core.index.pool cimport Pool
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.search.search cimport SearchWorkspace
from unbasket.core.model.fold cimport FoldWorkspace, Vector
from unbasket.core.util.topn cimport Candidate, smallest_first

cdef extern from "Python.h":
    int PyErr_SetInterruptEx(int signal)

ROW = np.dtype([("first", np.uintp), ("length", np.uint32), ("capacity", np.uint32)])
BASKET = np.dtype(
    {
        "names": ["key", "time", "size", "opens"],
        "formats": [np.int64, np.int64, np.uint32, np.uint8],
        "offsets": [0, 8, 16, 20],
        "itemsize": sizeof(Basket),
    }
)
CODE = np.dtype(np.uint32)
ENTRY = np.dtype([("item", np.uint32), ("weight", np.uint32), ("posting", np.uint32)])
POSTING = np.dtype([("row", np.uint32), ("weight", np.uint32)])
LEVEL = np.dtype([("value", np.float64), ("last", np.int32), ("item", np.uint32)])
HUB_SUM = np.dtype([("total", np.int64), ("item", np.uint32), ("", np.uint32)])
ITEM_SUMS = np.dtype([("buyers", np.int64), ("weight", np.int64)])
REGRESSION = np.dtype([("hits", np.int64), ("squares", np.int64)])
CHECKPOINT = np.dtype([("older", np.intp), ("baskets", np.intp), ("items", np.intp), ("groups", np.intp)])


cdef view(void *memory, Py_ssize_t count, dtype):
    """Return `count` records of memory as an array."""
    if count == 0:
        return np.zeros(0, dtype)
    cdef Py_ssize_t width = np.dtype(dtype).itemsize
    return np.asarray(PyMemoryView_FromMemory(<char *> memory, count * width, PyBUF_WRITE)).view(dtype)


def rows(JaggedArray rows):
    """Return where each row starts, its length and its capacity."""
    return view(rows.rows, rows.count, ROW)


def row(JaggedArray rows, Py_ssize_t row, dtype):
    return view(rows.first(row), rows.length(row), dtype)


def spare(JaggedArray rows, Py_ssize_t row):
    """Return the spare bytes of a row, behind its last record."""
    cdef char *end = <char *> rows.first(row) + rows.length(row) * rows.width
    return view(end, (rows.rows[row].capacity - rows.length(row)) * rows.width, np.uint8)


def free_block(JaggedArray rows, size_t size):
    cdef void *block = rows.blocks.allocate(size)
    rows.blocks.free(block)
    return view(block, size, np.uint8)


def append(JaggedArray rows, Py_ssize_t row):
    rows.append(row)


def open_gap(JaggedArray rows, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count):
    """Make room for `count` records before `position` of a row."""
    rows.open_gap(row, position, count)


def popularity(Histories histories):
    return view(histories.popularity, histories.item_room, np.int64)


def learned(LearnedSums sums):
    """Return the learned sums by name; the totals are users, hits, squares, purchases, buyers and weight."""
    return {
        "totals": view(&sums.totals, 6, np.int64),
        "items": view(sums.items, sums.item_room, ITEM_SUMS),
        "users": view(sums.users, sums.user_room, REGRESSION),
    }


def scales(Shard shard):
    """Return the scale of each row, as a multiple of 2^-16."""
    return view(shard.scale, shard.end, np.uint32)


def norms(Shard shard):
    return view(shard.norm, shard.end, np.int64)


def owners(Shard shard):
    """Return the user of each row; for a free row, the next free slot plus 1."""
    return view(shard.owner, shard.end, np.uint32)


def hub_numbers(Shard shard):
    """Return the 1-based index among the hubs of each row's user, or 0."""
    return view(shard.hub_number, shard.end, np.uint32)


def slots(Index index, Py_ssize_t segment=0):
    """Return the slot of each user plus 1, for a segment of the users."""
    return view(index.segments[segment], SEGMENT, np.uint32)


def where(Index index, Py_ssize_t user):
    """Return the shard and the row of a user."""
    cdef Py_ssize_t slot = index.slot_of(user)
    return index.shards[slot // index.shard_size], slot % index.shard_size


def norm_histogram(Index index):
    return view(index.norm_histogram, NORM_BINS, np.int64)


def hubs(Hubs hubs):
    """Return the arrays of the hubs by name; `slots` and `heap` with their spare capacity."""
    return {
        "slots": view(hubs.slots, hubs.hub_room, np.uint32),
        "sums": view(hubs.sums, hubs.item_room, np.int64),
        "heap_position": view(hubs.heap_position, hubs.item_room, np.uint32),
        "heap": view(hubs.heap, hubs.item_room, HUB_SUM),
    }


def pool(Pool pool):
    """Return the arrays of the pool by name, with their spare capacity."""
    return {
        "priorities": view(pool.priorities, pool.user_room, np.uint64),
        "positions": view(pool.positions, pool.user_room, np.uint32),
        "heaps": view(pool.heaps, pool.user_room, np.uint32),
    }


def dissolve(Index index):
    """Remove all hubs."""
    cdef Py_ssize_t slot
    index.hubs_limit = 0
    for slot in range(index.slot_end):
        index._reconsider(slot)


def newest_checkpoints(Checkpoints checkpoints):
    return view(checkpoints.newest, checkpoints.user_room, np.int32)


def checkpoints(Checkpoints checkpoints):
    """Return the table of all checkpoints, used or free."""
    return view(checkpoints.table, checkpoints.size, CHECKPOINT)


def add_checkpoint(LiveIndex live, Py_ssize_t user, Py_ssize_t baskets, Py_ssize_t items, Py_ssize_t groups):
    """Add a checkpoint with these counts and without levels."""
    cdef Checkpoint checkpoint = Checkpoint(0, baskets, items, groups)
    live.checkpoints.save(user, &checkpoint, live.space)


def add_basket(Histories histories, Py_ssize_t user, int64_t key, uint32_t item):
    """Insert a basket before all others of a user; nothing derived is updated, and the change is not recorded."""
    cdef Basket basket = Basket(key, 0, 1, False)
    notes, histories.notes_changes = histories.notes_changes, False
    histories.insert(user, 0, &basket, &item, 0)
    histories.notes_changes = notes


def put(LiveIndex live, Py_ssize_t user, bint in_index):
    """Put a user's vector into the index or remove it, whatever the pool says."""
    if in_index:
        live.checkpoints.peek(live.histories, user, live.rule, live.space)
    live.index.put(user, live.space, live.rule)
    live.space.clean()


def refold(LiveIndex live, Py_ssize_t user):
    """Return a user's vector before rounding, folded from the newest checkpoint on."""
    live.checkpoints.fold(live.histories, user, live.rule, live.space)
    vector = {
        live.space.touched[i]: fold.weight(live.space, live.space.touched[i], live.rule)
        for i in range(live.space.count)
    }
    live.space.clean()
    return vector


def is_clean(FoldWorkspace space):
    """Return whether the workspace of a fold is all zero."""
    cdef Py_ssize_t i
    for i in range(space.room):
        if space.levels[i].value != 0.0 or space.levels[i].last != 0 or space.touched[i] != 0:
            return False
    return space.count == 0 and space.groups == 0


def uses_hubs(SearchWorkspace space, Index index, Vector vector, Py_ssize_t user, Py_ssize_t k, GrowableArray order):
    """Return whether a recommendation starts from the hubs' sums."""
    cdef KnnQuery query = KnnQuery(vector.entries, vector.own, vector.length, user, k, order.data)
    space.nearest.find(index, &query, None)
    answer = space.scorer.uses_hubs(index, space.nearest.scan)
    space.nearest.scan.clear()
    return bool(answer)


def room(SearchWorkspace space):
    """Return the capacity of a workspace in candidates and in items."""
    return space.nearest.scan.room, space.scorer.item_room


def power(double base, Py_ssize_t exponent):
    """Return the base to a whole power, as the fold computes it."""
    return fold.power(base, exponent)


def fixed_point(double value):
    """Return a weight as a multiple of 2^-24."""
    return fold.fixed_point(value)


def norm_bin(norm):
    """Return the bin of a squared norm in the norm histogram."""
    return indexes.norm_bin(norm)


def norm_bin_end(number):
    """Return the smallest squared norm above a bin."""
    return indexes.norm_bin_end(number)


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


@cython.final
cdef class Interrupter:
    """A function for `sys.settrace` that sends a signal at a bytecode, counted from 0, of the calls that it traces.

    It is compiled, so the interpreter handles the signal where it would handle any other that arrives at that bytecode:
    a trace function in Python would be interrupted itself.
    """

    cdef readonly Py_ssize_t seen  # bytecodes
    cdef Py_ssize_t moment
    cdef int signal

    def __init__(self, Py_ssize_t moment, int signal):
        self.moment, self.signal = moment, signal

    def __call__(self, frame, event, argument):
        frame.f_trace_opcodes = True
        if event == "opcode":
            if self.seen == self.moment:
                PyErr_SetInterruptEx(self.signal)
            self.seen += 1
        return self
