cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class GrowableArray:
    cdef int64_t *data
    cdef readonly Py_ssize_t count, width
    cdef Py_ssize_t shape[2]
    cdef Py_ssize_t strides[2]
    cdef Py_ssize_t views
