cimport cython
from libc.stdint cimport int64_t, uint32_t


cdef struct Scored:
    double score
    uint32_t item


@cython.final
cdef class TopN:
    cdef Scored *heap
    cdef const int64_t *order
    cdef double threshold
    cdef readonly Py_ssize_t count, room

    cdef int reserve(self, Py_ssize_t n, const int64_t *order) except -1 nogil
    cdef void swap(self, TopN other) noexcept nogil
    cdef void insert(self, Scored one) noexcept nogil
    cdef void sift_down(self, Py_ssize_t count, Scored one) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef list drain(self, double unit)

    cdef inline void push(self, uint32_t item, double score) noexcept nogil:
        """Put an item among the best, if it belongs there and has a score above 0."""
        if score >= self.threshold and score > 0.0:
            self.insert(Scored(score, item))

    cdef inline bint ranks_before(self, Scored one, Scored other) noexcept nogil:
        return one.score > other.score or (one.score == other.score and self.order[one.item] < self.order[other.item])


cdef struct Candidate:
    int64_t key
    uint32_t code
    uint32_t slot


cdef void smallest_first(Candidate *candidates, Py_ssize_t count, Py_ssize_t k, const int64_t *order) noexcept nogil
