cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class GrowableArray:
    cdef int64_t *data  # count * width numbers, row by row
    cdef Py_ssize_t count  # rows
    cdef Py_ssize_t width  # numbers in a row
    cdef Py_ssize_t shape[2]  # of the exported buffers: count, width
    cdef Py_ssize_t strides[2]  # of the exported buffers, in bytes
    cdef Py_ssize_t views  # exported buffers, such as NumPy arrays; while there are any, `data` stays in place
