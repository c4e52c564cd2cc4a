"""Growable arrays of C structs: zero when they come, wiped before they go."""

from libc.string cimport memcpy

cdef extern from "buffers.h" nogil:
    void *zeroed(size_t count, size_t size)
    void give_back(void *memory, size_t bytes)
    const bint CHECKED


cdef inline int check(bint holds, const char *what) except -1 nogil:
    """An assertion for functions of .pxd files, where Cython has none without the GIL."""
    if CHECKED and not holds:
        with gil:
            raise AssertionError(what.decode())
    return 0


cdef inline void *allocated(Py_ssize_t count, size_t size) except NULL nogil:
    """A zeroed array."""
    cdef void *memory = zeroed(count, size)
    if memory == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} times {size} bytes")
    return memory


cdef inline void *grown(void *old, Py_ssize_t length, Py_ssize_t new_length, size_t size) except NULL nogil:
    """A longer array with the same start; the old one is wiped and freed."""
    cdef void *memory = allocated(new_length, size)
    if old != NULL:
        memcpy(memory, old, length * size)
        give_back(old, length * size)
    return memory
