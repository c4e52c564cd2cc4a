"""Allocation of arrays of C structs: zeroed when allocated, zeroed before they are freed."""

cdef extern from "memory/buffers.h" nogil:
    void release(void *memory, size_t bytes)
    void give_back(void *memory, size_t bytes)
    size_t nonzero_bytes(const void *memory, size_t bytes)
    void *set_memory(void *memory, int value, size_t bytes)
    void *zeroed(size_t count, size_t size)
    void *extended(void *old, size_t bytes, size_t new_bytes)
    const bint CHECKED  # whether this is a debug build


cdef inline int check(bint holds, const char *what) except -1 nogil:
    """Assert, in functions of .pxd files: there, Cython's `assert` needs the GIL."""
    if CHECKED and not holds:
        with gil:
            raise AssertionError(what.decode())


cdef inline void *allocated(Py_ssize_t count, size_t size) except NULL nogil:
    cdef void *memory = zeroed(count, size)
    if memory == NULL:
        with gil:
            raise MemoryError(f"no memory for {count} times {size} bytes")
    return memory


cdef inline void *grown(void *old, Py_ssize_t length, Py_ssize_t new_length, size_t size) except NULL nogil:
    """Grow an array. On Linux a large one is not copied; otherwise the original is zeroed after the copy."""
    cdef void *memory = extended(old, length * size, new_length * size)
    if memory == NULL:
        with gil:
            raise MemoryError(f"no memory for {new_length} times {size} bytes")
    return memory
