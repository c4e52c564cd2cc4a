cimport cython
from libc.math cimport ceil, rint
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from unbasket.core.crowd cimport Crowd
from unbasket.core.rows cimport Rows
from unbasket.core.space cimport FoldSpace
from unbasket.core.vector cimport Entry, Vector

cdef enum:
    SHADES = 32  # magnitudes per power of two
    MAGNITUDES = 64 * 32
    ONE_BITS = 24
    TOGETHER = 8  # users that a search looks at together


cdef struct Posting:
    uint32_t user
    uint32_t weight


@cython.final
cdef class Index:
    cdef readonly Rows vectors, postings
    cdef int64_t *norm
    cdef readonly Py_ssize_t user_room, user_end, item_room
    cdef int64_t population[MAGNITUDES]
    cdef readonly Crowd crowd

    cdef int make_room(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef int settle(self, Py_ssize_t user, FoldSpace space, double group_decay) except -1 nogil
    cdef int add(self, uint32_t user, uint32_t item, uint32_t weight) except -1 nogil
    cdef int rank(self, Py_ssize_t user, int64_t norm) except -1 nogil
    cdef int grow_older(self) except -1 nogil
    cdef int choose_crowd(self) except -1 nogil
    cdef int expect(self, const int64_t *having) except -1 nogil
    cdef int64_t limit_of(self, Py_ssize_t rank) noexcept nogil
    cdef int64_t _change_entries(self, Py_ssize_t user, FoldSpace space, double group_decay) except -1 nogil
    cdef int64_t _add_entries(self, Py_ssize_t user, FoldSpace space, double group_decay) except -1 nogil
    cdef int _fill(
        self, const int64_t[::1] ends, const uint32_t[::1] items, const uint32_t[::1] weights
    ) except -1 nogil
    cdef int _remove(self, Py_ssize_t user, Py_ssize_t i) except -1 nogil

    cdef inline Entry *vector(self, Py_ssize_t user) except NULL nogil:
        """The entries of a user's vector. Valid until something is added to any."""
        return <Entry *> self.vectors.first(user)


cdef inline Py_ssize_t room_for(Py_ssize_t users) noexcept nogil:
    """Room for so many users, or a few more: a search looks at so many together."""
    return (users + TOGETHER - 1) // TOGETHER * TOGETHER


cdef inline int64_t fixed_point(double value) noexcept nogil:
    """A weight as a multiple of 2^-24."""
    return <int64_t> rint(value * (1 << ONE_BITS))


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
