cimport cython
from libc.stdint cimport uint32_t, uint64_t


@cython.final
cdef class Pool:
    cdef readonly Py_ssize_t size  # users in the pool at most
    cdef readonly Py_ssize_t count  # users in the pool and on the waiting list
    cdef Py_ssize_t user_room  # length of the arrays
    cdef object _precedes  # decides between two users of equal priority
    cdef uint64_t *priorities  # by user
    cdef uint32_t *positions  # by user: position in `heaps` plus 1, or 0
    cdef uint32_t *heaps  # users: the heap of the pool, then from `size` on that of the waiting list

    cdef int admit(self, Py_ssize_t users) except -1 nogil
    cpdef bint holds(self, Py_ssize_t user) except -1 nogil
    cdef Py_ssize_t add(self, uint32_t user, uint64_t priority) except -2
    cdef Py_ssize_t remove(self, uint32_t user) except -2
    cdef bint is_before(self, uint32_t user, uint32_t other) except -1
    cdef bint _belongs_above(self, Py_ssize_t position, Py_ssize_t other) except -1
    cdef int _put(self, Py_ssize_t position, uint32_t user) except -1
    cdef int _sift(self, Py_ssize_t position) except -1
    cdef Py_ssize_t _sift_up(self, Py_ssize_t position) except -1
    cdef int _sift_down(self, Py_ssize_t position) except -1
    cdef int _swap(self, Py_ssize_t position, Py_ssize_t other) except -1
