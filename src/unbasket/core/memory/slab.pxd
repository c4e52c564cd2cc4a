cimport cython
from libc.stdint cimport uint32_t, uint64_t

cdef enum:
    SLAB = 1 << 16  # bytes of a slab, and the alignment of its address
    REGION = 63  # slabs of the largest region
    UNIT = 8  # bytes; block sizes are multiples of it
    FEWEST = 4  # units of the smallest block
    LARGEST = 1 << 13  # bytes of the largest block
    SIZE_CLASSES = 113  # size classes, from 0 (no blocks) to that of the largest block
    WORDS = SLAB // (UNIT * FEWEST) // 64  # words of a bitmap with a bit for each block


cdef struct Region:  # slabs that are allocated at once; a header before the first of them
    size_t bytes  # of the allocation
    Slab *first  # its first slab
    uint32_t slabs  # how many it has
    uint32_t started  # slabs that were ever in use; the others are untouched
    uint32_t busy  # slabs with a block in use
    Region *next  # the next older region
    Region *previous  # the next newer region


cdef struct Slab:  # the header of a slab; its blocks follow
    Region *region  # the region that it is in
    Slab *next  # in the list of open or of idle slabs
    Slab *previous  # in the same list
    uint32_t size_class  # of its blocks; 0 while it is idle
    uint32_t capacity  # blocks that fit
    uint32_t used  # blocks in use
    uint64_t taken[WORDS]  # bitmap of the blocks in use


@cython.final
cdef class SlabAllocator:
    cdef Slab *open[SIZE_CLASSES]  # lists of slabs with a free block, by size class
    cdef Slab *idle  # list of slabs without a block in use
    cdef Region *regions  # list of all regions, newest first; only the newest may have slabs that are not started
    cdef readonly Py_ssize_t slab_count  # slabs of all regions
    cdef readonly Py_ssize_t idle_count  # slabs without a block in use, started or not
    cdef readonly Py_ssize_t used  # blocks in use

    cdef void *allocate(self, size_t bytes) except NULL nogil
    cdef int free(self, void *block) except -1 nogil
    cdef size_t block_size(self, void *block) noexcept nogil
    cdef Py_ssize_t residue(self) noexcept nogil
    cdef Slab *_start(self, uint32_t size_class) except NULL nogil
    cdef int _add_region(self) except -1 nogil
    cdef void _drop_region(self, Region *region) noexcept nogil


cdef inline size_t size_class_of(size_t bytes) noexcept nogil:
    """Return the class of the smallest blocks that fit: one class per unit at first, then 16 per power of two."""
    cdef size_t units = max((bytes + UNIT - 1) // UNIT, <size_t> FEWEST), shift = 0
    while (units + (<size_t> 1 << shift) - 1) >> shift > 31:
        shift += 1
    return 16 * shift + ((units + (<size_t> 1 << shift) - 1) >> shift)


cdef inline size_t bytes_of(size_t size_class) noexcept nogil:
    cdef size_t shift = size_class // 16 - 1 if size_class >= 32 else 0
    return ((size_class - 16 * shift) << shift) * UNIT
