cimport cython
from libc.math cimport ceil
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from unbasket.core.memory.buffers cimport check
from unbasket.core.index.hubs cimport Hubs
from unbasket.core.index.shard cimport Shard
from unbasket.core.model.fold cimport FoldWorkspace, VectorEntry

cdef enum:
    SHADES = 32  # magnitudes per power of two
    MAGNITUDES = 64 * 32
    SEGMENT = 1 << 14  # codes in a segment of the map from codes to slots


@cython.final
cdef class Index:
    cdef readonly list shards
    cdef void **table
    cdef readonly Py_ssize_t shard_size, shard_count, slot_end, user_room, item_room
    cdef Py_ssize_t shard_bits, unused
    cdef uint32_t **segments
    cdef int64_t population[MAGNITUDES]
    cdef readonly Hubs hubs
    cdef Py_ssize_t hand
    cdef int64_t hubs_limit

    cdef int make_room(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef int put(self, Py_ssize_t user, FoldWorkspace space, double group_decay) except -1 nogil
    cdef Py_ssize_t claim(self, Py_ssize_t user) except -1 nogil
    cdef int release(self, Py_ssize_t slot) except -1 nogil
    cdef int count(self, int64_t old_norm, int64_t norm) except -1 nogil
    cdef int64_t limit_of(self, Py_ssize_t rank) noexcept nogil
    cdef int update_hubs(self) except -1 nogil
    cdef int choose_hubs(self) except -1 nogil
    cdef bint _reconsider(self, Py_ssize_t slot) except -1 nogil
    cdef int _leave_hubs(self, Py_ssize_t slot) except -1 nogil
    cdef int _add_shard(self) except -1 nogil
    cdef int _fill(
        self, const int64_t[::1] ends, const uint32_t[::1] items, const uint32_t[::1] weights
    ) except -1 nogil

    # A slot is a row of a shard: numbers count on from shard to shard.

    cdef inline Py_ssize_t slot_of(self, Py_ssize_t user) except -2 nogil:
        """The slot of a user; -1 if nothing is held of them."""
        check(0 <= user < self.user_room, "no such user")
        return <Py_ssize_t> self.segments[user // SEGMENT][user % SEGMENT] - 1

    cdef inline void *shard_of(self, Py_ssize_t slot) noexcept nogil:
        """The shard that a slot is in."""
        return self.table[slot >> self.shard_bits]

    cdef inline Py_ssize_t row_of(self, Py_ssize_t slot) noexcept nogil:
        """The row of its shard that a slot is."""
        return slot & (self.shard_size - 1)

    cdef inline VectorEntry *vector(self, Py_ssize_t slot) except NULL nogil:
        """The entries of a vector. Valid until something is added to any."""
        return (<Shard> self.shard_of(slot)).vector(self.row_of(slot))

    cdef inline Py_ssize_t length(self, Py_ssize_t slot) except -1 nogil:
        """How many entries a vector has."""
        return (<Shard> self.shard_of(slot)).vectors.length(self.row_of(slot))


cdef inline Py_ssize_t magnitude(int64_t norm) noexcept nogil:
    """A coarse, monotone logarithm of a squared norm from 1 on: the leading bits of it as a float."""
    cdef double number = <double> norm
    cdef int64_t bits
    memcpy(&bits, &number, sizeof(bits))
    return (bits >> 47) - (1023 << 5)


cdef inline int64_t magnitude_end(Py_ssize_t level) noexcept nogil:
    """The smallest squared norm that is of a larger magnitude."""
    cdef int64_t bits = <int64_t> (level + 1 + (1023 << 5)) << 47
    cdef double number
    memcpy(&number, &bits, sizeof(bits))
    return <int64_t> ceil(number)
