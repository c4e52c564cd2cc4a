cimport cython
from libc.stdint cimport int64_t, uint32_t


cdef struct Scored:
    double score  # above 0
    uint32_t item  # code


@cython.final
cdef class TopN:
    cdef Scored *heap  # binary heap, the worst at the root
    cdef const int64_t *order  # by item, for ties; borrowed from the caller of `reserve`
    cdef double threshold  # the score of the worst once the heap is full, else 0
    cdef readonly Py_ssize_t count  # items in the heap
    cdef readonly Py_ssize_t capacity  # n

    cdef int reserve(self, Py_ssize_t n, const int64_t *order) except -1 nogil
    cdef void swap(self, TopN other) noexcept nogil
    cdef void insert(self, Scored one) noexcept nogil
    cdef void sift_down(self, Py_ssize_t count, Scored one) noexcept nogil
    cdef void clear(self) noexcept nogil
    cdef list drain(self, double unit)

    cdef inline void push(self, uint32_t item, double score) noexcept nogil:
        """Add an item if its score is above 0 and among the n best so far."""
        if score >= self.threshold and score > 0.0:
            self.insert(Scored(score, item))

    cdef inline bint ranks_before(self, Scored one, Scored other) noexcept nogil:
        return one.score > other.score or (one.score == other.score and self.order[one.item] < self.order[other.item])


cdef struct Candidate:
    int64_t key  # compared first
    uint32_t code  # of the user; breaks ties by `order[code]`
    uint32_t slot  # of the user in the index; not compared


cdef void smallest_first(Candidate *candidates, Py_ssize_t count, Py_ssize_t k, const int64_t *order) noexcept nogil
