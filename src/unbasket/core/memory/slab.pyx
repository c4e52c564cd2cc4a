"""SlabAllocator of memory of many sizes, at most 8 KiB: carved from segments, each of which has blocks of one size.

Nothing is ever moved to make room, so a block costs the same in a large shop as in a small one. Sizes are at most 1/16
apart. A free block is zero and is the next that is taken of its size; segments whose blocks are all free serve blocks
of any size, and a region of segments that are all free is given back, unless it is the only one in reserve. What stays
unused is therefore, for each size, what was once in use of it: a stream of changes that leaves as many rows of a size
as it found needs no more memory with time.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.string cimport memset

from unbasket.core.memory.buffers cimport allocated, check, give_back, lowest_zero, nonzero_bytes, release


cdef inline Segment *segment_of(void *block) noexcept nogil:
    return <Segment *> (<uintptr_t> block & ~(<uintptr_t> SEGMENT - 1))


cdef inline char *block_at(Segment *segment, size_t number) noexcept nogil:
    return <char *> segment + sizeof(Segment) + number * bytes_of(segment.kind)


cdef inline void link(Segment **head, Segment *segment) noexcept nogil:
    """Put a segment in front of a list."""
    segment.previous, segment.next = NULL, head[0]
    if head[0] != NULL:
        head[0].previous = segment
    head[0] = segment


cdef inline void unlink(Segment **head, Segment *segment) noexcept nogil:
    if segment.previous != NULL:
        segment.previous.next = segment.next
    else:
        head[0] = segment.next
    if segment.next != NULL:
        segment.next.previous = segment.previous
    segment.previous = segment.next = NULL


@cython.final
cdef class SlabAllocator:
    """Lists of the segments that have room, by the size of their blocks; of idle segments; and of all regions.

    `used` counts the blocks in use, `segment_count` and `idle_count` the segments, those that were not started yet among
    them. An idle segment is of kind 0. Only the newest region, the first on the list, may have segments to start.
    """

    def __dealloc__(self):
        cdef Region *region = self.regions
        cdef Region *following
        while region != NULL:
            following = region.next
            give_back(region, region.bytes)
            region = following

    cdef void *allocate(self, size_t bytes) except NULL nogil:
        """A block of zeros with room for so many bytes."""
        check(bytes <= LARGEST, "too large for a block")
        cdef uint32_t kind = kind_of(bytes)
        cdef Segment *segment = self.open[kind]
        cdef uint32_t word = 0
        if segment == NULL:
            segment = self._start(kind)
        while ~segment.taken[word] == 0:
            word += 1
        cdef int bit = lowest_zero(segment.taken[word])
        segment.taken[word] |= <uint64_t> 1 << bit
        segment.used += 1
        self.used += 1
        if segment.used == segment.room:
            unlink(&self.open[kind], segment)
        return block_at(segment, 64 * word + bit)

    cdef int free(self, void *block) except -1 nogil:
        """Give back a block, which the caller has wiped."""
        cdef Segment *segment = segment_of(block)
        cdef size_t number = (<char *> block - block_at(segment, 0)) // bytes_of(segment.kind)
        assert segment.taken[number // 64] >> (number % 64) & 1, "no block that was taken"
        assert block == block_at(segment, number), "not the start of a block"
        segment.taken[number // 64] &= ~(<uint64_t> 1 << (number % 64))
        if segment.used == segment.room:
            link(&self.open[segment.kind], segment)
        segment.used -= 1
        self.used -= 1
        if segment.used > 0:
            return 0
        unlink(&self.open[segment.kind], segment)
        segment.kind = segment.room = 0
        link(&self.idle, segment)
        self.idle_count += 1
        segment.region.busy -= 1
        if segment.region.busy == 0 and self.idle_count >= 2 * segment.region.segments:
            self._drop_region(segment.region)
        return 0

    cdef size_t room(self, void *block) noexcept nogil:
        """How many bytes a block has."""
        return bytes_of(segment_of(block).kind)

    cdef Segment *_start(self, uint32_t kind) except NULL nogil:
        """Let an idle segment have blocks of this kind."""
        cdef Segment *segment = self.idle
        if segment != NULL:
            unlink(&self.idle, segment)
        else:
            if self.regions == NULL or self.regions.started == self.regions.segments:
                self._add_region()
            segment = <Segment *> (<char *> self.regions.first + self.regions.started * <size_t> SEGMENT)
            segment.region = self.regions
            self.regions.started += 1
        self.idle_count -= 1
        segment.region.busy += 1
        segment.kind = kind
        segment.room = (SEGMENT - sizeof(Segment)) // bytes_of(kind)
        link(&self.open[kind], segment)
        return segment

    cdef int _add_region(self) except -1 nogil:
        """Allocate segments: one at first, then as many as there are, up to some megabytes at a time.

        They are not touched before they are started, since memory takes its time when it is touched first.
        """
        cdef Py_ssize_t segments = min(max(self.segment_count, 1), <Py_ssize_t> REGION)
        cdef size_t bytes = sizeof(Region) + (segments + 1) * SEGMENT  # one more: they start at multiples of their size
        cdef Region *region = <Region *> allocated(bytes, 1)
        region.bytes, region.segments = bytes, <uint32_t> segments
        region.first = segment_of(<char *> region + sizeof(Region) + SEGMENT - 1)
        self.segment_count += segments
        self.idle_count += segments
        region.next = self.regions
        if region.next != NULL:
            region.next.previous = region
        self.regions = region
        return 0

    cdef void _drop_region(self, Region *region) noexcept nogil:
        """Give back a region whose segments are all idle."""
        cdef Segment *segment
        cdef Py_ssize_t i
        cdef size_t bytes = region.bytes
        for i in range(region.started):
            segment = <Segment *> (<char *> region.first + i * SEGMENT)
            unlink(&self.idle, segment)
            memset(segment, 0, sizeof(Segment))
        self.segment_count -= region.segments
        self.idle_count -= region.segments
        if region.previous != NULL:
            region.previous.next = region.next
        else:
            self.regions = region.next
        if region.next != NULL:
            region.next.previous = region.previous
        memset(region, 0, sizeof(Region))
        release(region, bytes)

    cdef Py_ssize_t residue(self) noexcept nogil:
        """How many bytes that are in no block in use are not zero."""
        cdef Region *region = self.regions
        cdef Segment *segment
        cdef char *end
        cdef size_t i, number, count = 0
        while region != NULL:
            for i in range(region.started):
                segment = <Segment *> (<char *> region.first + i * SEGMENT)
                for number in range(segment.room):
                    if not segment.taken[number // 64] >> (number % 64) & 1:
                        count += nonzero_bytes(block_at(segment, number), bytes_of(segment.kind))
                end = block_at(segment, segment.room)
                count += nonzero_bytes(end, <char *> segment + SEGMENT - end)
            region = region.next
        return count
