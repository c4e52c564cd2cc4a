"""A slab allocator: blocks of up to 8 KiB, carved from slabs of 64 KiB that each hold blocks of one size class.

Blocks never move, so an allocation costs the same in a large shop as in a small one. Sizes of blocks are at most 1/16
apart. A free block is zero and is the next to be allocated of its size. A slab without a block in use serves any size.
A region without a slab in use is freed, unless it is the only one in reserve. Unused memory is thus bounded, for each
size, by its peak use: a stream of changes that leaves as many rows of a size as before needs no more memory over time.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from unbasket.core.memory.buffers cimport allocated, check, give_back, nonzero_bytes, release

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t bits) nogil


cdef inline Slab *slab_of(void *block) noexcept nogil:
    return <Slab *> (<uintptr_t> block & ~(<uintptr_t> SLAB - 1))


cdef inline char *block_at(Slab *slab, size_t number) noexcept nogil:
    return <char *> slab + sizeof(Slab) + number * bytes_of(slab.size_class)


cdef inline void link(Slab **head, Slab *slab) noexcept nogil:
    slab.previous, slab.next = NULL, head[0]
    if head[0] != NULL:
        head[0].previous = slab
    head[0] = slab


cdef inline void unlink(Slab **head, Slab *slab) noexcept nogil:
    if slab.previous != NULL:
        slab.previous.next = slab.next
    else:
        head[0] = slab.next
    if slab.next != NULL:
        slab.next.previous = slab.previous
    slab.previous = slab.next = NULL


@cython.final
cdef class SlabAllocator:
    """Regions of slabs, with lists of the slabs that have a free block, by size class, and of idle slabs."""

    def __dealloc__(self):
        cdef Region *region = self.regions
        cdef Region *following
        while region != NULL:
            following = region.next
            give_back(region, region.bytes)
            region = following

    cdef void *allocate(self, size_t bytes) except NULL nogil:
        """Return a zeroed block of at least `bytes` bytes."""
        check(bytes <= LARGEST, "too large for a block")
        cdef uint32_t size_class = size_class_of(bytes)
        cdef Slab *slab = self.open[size_class]
        cdef uint32_t word = 0
        if slab == NULL:
            slab = self._start(size_class)
        while ~slab.taken[word] == 0:
            word += 1
        cdef int bit = trailing_zeros(~slab.taken[word])
        slab.taken[word] |= <uint64_t> 1 << bit
        slab.used += 1
        self.used += 1
        if slab.used == slab.capacity:
            unlink(&self.open[size_class], slab)
        return block_at(slab, 64 * word + bit)

    cdef int free(self, void *block) except -1 nogil:
        """Free a block that the caller has zeroed."""
        cdef Slab *slab = slab_of(block)
        cdef size_t number = (<char *> block - block_at(slab, 0)) // bytes_of(slab.size_class)
        assert slab.taken[number // 64] >> (number % 64) & 1, "no block in use"
        assert block == block_at(slab, number), "not the start of a block"
        slab.taken[number // 64] &= ~(<uint64_t> 1 << (number % 64))
        if slab.used == slab.capacity:
            link(&self.open[slab.size_class], slab)
        slab.used -= 1
        self.used -= 1
        if slab.used > 0:
            return 0
        unlink(&self.open[slab.size_class], slab)
        slab.size_class = slab.capacity = 0
        link(&self.idle, slab)
        self.idle_count += 1
        slab.region.busy -= 1
        if slab.region.busy == 0 and self.idle_count >= 2 * slab.region.slabs:
            self._drop_region(slab.region)

    cdef size_t block_size(self, void *block) noexcept nogil:
        return bytes_of(slab_of(block).size_class)

    cdef Slab *_start(self, uint32_t size_class) except NULL nogil:
        """Open an idle slab for blocks of a size class."""
        cdef Slab *slab = self.idle
        if slab != NULL:
            unlink(&self.idle, slab)
        else:
            if self.regions == NULL or self.regions.started == self.regions.slabs:
                self._add_region()
            slab = <Slab *> (<char *> self.regions.first + self.regions.started * <size_t> SLAB)
            slab.region = self.regions
            self.regions.started += 1
        self.idle_count -= 1
        slab.region.busy += 1
        slab.size_class = size_class
        slab.capacity = (SLAB - sizeof(Slab)) // bytes_of(size_class)
        link(&self.open[size_class], slab)
        return slab

    cdef int _add_region(self) except -1 nogil:
        """Allocate slabs: one at first, then as many as there are, up to 4 MB at a time.

        A slab is not touched before it is started: the first access to memory costs a page fault.
        """
        cdef Py_ssize_t slabs = min(max(self.slab_count, 1), <Py_ssize_t> REGION)
        cdef size_t bytes = sizeof(Region) + (slabs + 1) * SLAB  # one more, to align the first
        cdef Region *region = <Region *> allocated(bytes, 1)
        region.bytes, region.slabs = bytes, <uint32_t> slabs
        region.first = slab_of(<char *> region + sizeof(Region) + SLAB - 1)
        self.slab_count += slabs
        self.idle_count += slabs
        region.next = self.regions
        if region.next != NULL:
            region.next.previous = region
        self.regions = region

    cdef void _drop_region(self, Region *region) noexcept nogil:
        """Free a region whose slabs are all idle."""
        cdef Slab *slab
        cdef Py_ssize_t i
        cdef size_t bytes = region.bytes
        for i in range(region.started):
            slab = <Slab *> (<char *> region.first + i * SLAB)
            unlink(&self.idle, slab)
            memset(slab, 0, sizeof(Slab))
        self.slab_count -= region.slabs
        self.idle_count -= region.slabs
        if region.previous != NULL:
            region.previous.next = region.next
        else:
            self.regions = region.next
        if region.next != NULL:
            region.next.previous = region.previous
        memset(region, 0, sizeof(Region))
        release(region, bytes)

    cdef Py_ssize_t residue(self) noexcept nogil:
        """Count the nonzero bytes outside blocks in use."""
        cdef Region *region = self.regions
        cdef Slab *slab
        cdef char *end
        cdef size_t i, number, count = 0
        while region != NULL:
            for i in range(region.started):
                slab = <Slab *> (<char *> region.first + i * SLAB)
                for number in range(slab.capacity):
                    if not slab.taken[number // 64] >> (number % 64) & 1:
                        count += nonzero_bytes(block_at(slab, number), bytes_of(slab.size_class))
                end = block_at(slab, slab.capacity)
                count += nonzero_bytes(end, <char *> slab + SLAB - end)
            region = region.next
        return count
