from libc.stdint cimport int64_t, uint32_t


cdef struct Candidate:
    int64_t key
    uint32_t code
    uint32_t slot


cdef void smallest_first(Candidate *candidates, Py_ssize_t count, Py_ssize_t k, const int64_t *order) noexcept nogil
