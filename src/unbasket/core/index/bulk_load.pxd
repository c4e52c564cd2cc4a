cimport cython

from unbasket.core.model.history cimport Basket


@cython.final
cdef class Baskets:
    cdef Basket *records
    cdef Py_ssize_t count
