cimport cython
from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    SEGMENT = 1 << 16  # bytes, and what the address of a segment is a multiple of
    REGION = 63  # segments that are allocated together, at most
    UNIT = 8  # bytes: blocks are multiples of it
    FEWEST = 4  # units of the smallest blocks
    LARGEST = 1 << 13  # bytes of the largest blocks
    KINDS = 113  # sizes of blocks, the largest included
    WORDS = SEGMENT // (UNIT * FEWEST) // 64


cdef struct Region:
    size_t bytes
    Segment *first
    uint32_t segments
    uint32_t started
    uint32_t busy
    Region *next
    Region *previous


cdef struct Segment:
    Region *region
    Segment *next
    Segment *previous
    uint32_t kind
    uint32_t room
    uint32_t used
    uint64_t taken[WORDS]


@cython.final
cdef class SlabAllocator:
    cdef Segment *open[KINDS]
    cdef Segment *idle
    cdef Region *regions
    cdef readonly Py_ssize_t segment_count, idle_count, used

    cdef void *allocate(self, size_t bytes) except NULL nogil
    cdef int free(self, void *block) except -1 nogil
    cdef size_t room(self, void *block) noexcept nogil
    cdef Py_ssize_t residue(self) noexcept nogil
    cdef Segment *_start(self, uint32_t kind) except NULL nogil
    cdef int _add_region(self) except -1 nogil
    cdef void _drop_region(self, Region *region) noexcept nogil


cdef inline size_t kind_of(size_t bytes) noexcept nogil:
    """The number of the smallest blocks with so many bytes: one a unit at first, then 16 for every power of two."""
    cdef size_t units = max((bytes + UNIT - 1) // UNIT, <size_t> FEWEST), shift = 0
    while (units + (<size_t> 1 << shift) - 1) >> shift > 31:
        shift += 1
    return 16 * shift + ((units + (<size_t> 1 << shift) - 1) >> shift)


cdef inline size_t bytes_of(size_t kind) noexcept nogil:
    """How many bytes such blocks have."""
    cdef size_t shift = kind // 16 - 1 if kind >= 32 else 0
    return ((kind - 16 * shift) << shift) * UNIT
