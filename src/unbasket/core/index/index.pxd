cimport cython
from libc.math cimport ceil
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from unbasket.core.index.hubs cimport Hubs
from unbasket.core.index.shard cimport Shard
from unbasket.core.memory.buffers cimport check
from unbasket.core.model.fold cimport FoldWorkspace, Rule, VectorEntry

cdef enum:
    OCTAVE_BITS = 5  # 32 bins of the norm histogram per octave, that is, per power of two
    NORM_BINS = 64 << 5
    SEGMENT = 1 << 14  # user codes in a segment of the map from users to slots


@cython.final
cdef class Index:
    cdef readonly list shards  # of equal size
    cdef void **table  # the same shards, for code without the GIL
    cdef readonly Py_ssize_t shard_size  # rows, a power of two
    cdef Py_ssize_t shard_bits  # its logarithm
    cdef Py_ssize_t shard_count  # length of `table`
    cdef readonly Py_ssize_t slot_end  # slots from here on have never been used
    cdef Py_ssize_t unused  # the first slot given back, plus 1; others follow by `owner`; 0 ends the chain
    cdef uint32_t **segments  # by user: slot plus 1, or 0
    cdef Py_ssize_t user_room  # user codes that fit
    cdef readonly Py_ssize_t item_room  # item codes that fit
    cdef int64_t norm_histogram[NORM_BINS]  # users per bin of the squared norm
    cdef readonly Hubs hubs  # and the sums of their vectors
    cdef Py_ssize_t hand  # clock hand of `update_hubs`: the next slot to look at
    cdef int64_t hubs_limit  # users with a smaller squared norm become hubs

    cpdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef int put(self, Py_ssize_t user, FoldWorkspace space, Rule rule) except -1 nogil
    cdef Py_ssize_t claim(self, Py_ssize_t user) except -1 nogil
    cdef int release(self, Py_ssize_t slot) except -1 nogil
    cdef int count_norm(self, int64_t old_norm, int64_t norm) except -1 nogil
    cdef int64_t limit_of(self, Py_ssize_t rank) noexcept nogil
    cdef int update_hubs(self) except -1 nogil
    cdef int choose_hubs(self) except -1 nogil
    cdef bint _reconsider(self, Py_ssize_t slot) except -1 nogil
    cdef int _remove_hub(self, Py_ssize_t slot) except -1 nogil
    cdef int _add_shard(self) except -1 nogil

    # A slot is a row of a shard: numbers count on from shard to shard.

    cdef inline Py_ssize_t slot_of(self, Py_ssize_t user) except -2 nogil:
        """Return the slot of a user, or -1 if the user has no vector."""
        check(0 <= user < self.user_room, "no such user")
        return <Py_ssize_t> self.segments[user // SEGMENT][user % SEGMENT] - 1

    cdef inline void *shard_of(self, Py_ssize_t slot) noexcept nogil:
        return self.table[slot >> self.shard_bits]

    cdef inline Py_ssize_t row_of(self, Py_ssize_t slot) noexcept nogil:
        """Return the row of a slot in its shard."""
        return slot & (self.shard_size - 1)

    cdef inline VectorEntry *vector(self, Py_ssize_t slot) except NULL nogil:
        """Return the entries of a vector. Valid until an entry is added to any vector."""
        return (<Shard> self.shard_of(slot)).vector(self.row_of(slot))

    cdef inline Py_ssize_t length(self, Py_ssize_t slot) except -1 nogil:
        return (<Shard> self.shard_of(slot)).vectors.length(self.row_of(slot))

    cdef inline uint32_t scale(self, Py_ssize_t slot) noexcept nogil:
        """Return the scale of a history; its vector times the scale is what others are recommended by."""
        return (<Shard> self.shard_of(slot)).scale[self.row_of(slot)]


cdef inline Py_ssize_t norm_bin(int64_t norm) noexcept nogil:
    """Return the bin of a squared norm above 0, a monotone logarithm: the leading bits of the norm as a float."""
    cdef double number = <double> norm
    cdef int64_t bits
    memcpy(&bits, &number, sizeof(bits))
    return (bits >> (52 - OCTAVE_BITS)) - (1023 << OCTAVE_BITS)


cdef inline int64_t norm_bin_end(Py_ssize_t bin) noexcept nogil:
    """Return the smallest squared norm above those of a bin."""
    cdef int64_t bits = <int64_t> (bin + 1 + (1023 << OCTAVE_BITS)) << (52 - OCTAVE_BITS)
    cdef double number
    memcpy(&number, &bits, sizeof(bits))
    return <int64_t> ceil(number)
