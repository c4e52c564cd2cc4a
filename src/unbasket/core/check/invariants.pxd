from libc.stdint cimport int64_t

from unbasket.core.index.index cimport Index
from unbasket.core.index.shard cimport Shard
from unbasket.core.index.pool cimport Pool

# The numbers of `STRUCTURES`.
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
    PLACE_COUNT


cdef Shard shard_at(Index index, Py_ssize_t slot)
cdef bint owns(Index index, Py_ssize_t user, Py_ssize_t slot)
cdef Py_ssize_t level_of(int64_t norm) noexcept nogil
cdef bint is_misplaced(Pool pool, Py_ssize_t user, bint is_there) except -1
cdef bint is_littered(Index index, Py_ssize_t slot)
cdef Py_ssize_t misplaced(Shard shard, Py_ssize_t row) except -1
cdef Py_ssize_t chain_faults(Index index, Py_ssize_t empty) except -1
cdef Py_ssize_t hubs_faults(Index index, items) except -1
