cimport cython
from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    SLAB = 1 << 16  # bytes, and what the address of a slab is a multiple of
    REGION = 63  # slabs that are allocated together, at most
    UNIT = 8  # bytes: blocks are multiples of it
    FEWEST = 4  # units of the smallest blocks
    LARGEST = 1 << 13  # bytes of the largest blocks
    SIZE_CLASSES = 113  # sizes of blocks, the largest included
    WORDS = SLAB // (UNIT * FEWEST) // 64


cdef struct Region:
    size_t bytes
    Slab *first
    uint32_t slabs
    uint32_t started
    uint32_t busy
    Region *next
    Region *previous


cdef struct Slab:
    Region *region
    Slab *next
    Slab *previous
    uint32_t size_class
    uint32_t room
    uint32_t used
    uint64_t taken[WORDS]


@cython.final
cdef class SlabAllocator:
    cdef Slab *open[SIZE_CLASSES]
    cdef Slab *idle
    cdef Region *regions
    cdef readonly Py_ssize_t slab_count, idle_count, used

    cdef void *allocate(self, size_t bytes) except NULL nogil
    cdef int free(self, void *block) except -1 nogil
    cdef size_t room(self, void *block) noexcept nogil
    cdef Py_ssize_t residue(self) noexcept nogil
    cdef Slab *_start(self, uint32_t size_class) except NULL nogil
    cdef int _add_region(self) except -1 nogil
    cdef void _drop_region(self, Region *region) noexcept nogil


cdef inline size_t size_class_of(size_t bytes) noexcept nogil:
    """The number of the smallest blocks with so many bytes: one a unit at first, then 16 for every power of two."""
    cdef size_t units = max((bytes + UNIT - 1) // UNIT, <size_t> FEWEST), shift = 0
    while (units + (<size_t> 1 << shift) - 1) >> shift > 31:
        shift += 1
    return 16 * shift + ((units + (<size_t> 1 << shift) - 1) >> shift)


cdef inline size_t bytes_of(size_t size_class) noexcept nogil:
    """How many bytes such blocks have."""
    cdef size_t shift = size_class // 16 - 1 if size_class >= 32 else 0
    return ((size_class - 16 * shift) << shift) * UNIT
