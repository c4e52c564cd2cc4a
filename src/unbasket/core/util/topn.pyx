"""The n best items, by a bounded heap; the k smallest candidates, by quickselect. Ties go by a second key."""

cimport cython
from libc.stdint cimport int64_t

from unbasket.core.memory.buffers cimport allocated, give_back


@cython.final
cdef class TopN:
    """A bounded heap of the n best items: the item at i ranks before its parent at (i - 1) // 2.

    When the heap is full, items with a score below the `threshold` can be skipped.
    """

    def __dealloc__(self):
        give_back(self.heap, self.capacity * sizeof(Scored))

    cdef int reserve(self, Py_ssize_t n, const int64_t *order) except -1 nogil:
        """Set the size of the empty heap, n > 0. Of equal scores, the item with the smaller `order` ranks first."""
        assert n > 0 and self.count == 0, "n is 0, or the heap is in use"
        if n != self.capacity:
            give_back(self.heap, self.capacity * sizeof(Scored))
            self.heap, self.capacity = NULL, 0
            self.heap = <Scored *> allocated(n, sizeof(Scored))
            self.capacity = n
        self.order = order

    cdef void swap(self, TopN other) noexcept nogil:
        self.heap, other.heap = other.heap, self.heap
        self.order, other.order = other.order, self.order
        self.threshold, other.threshold = other.threshold, self.threshold
        self.count, other.count = other.count, self.count
        self.capacity, other.capacity = other.capacity, self.capacity

    cdef void insert(self, Scored one) noexcept nogil:
        """Insert an item; in a full heap, it replaces the worst if it ranks before that."""
        cdef Py_ssize_t i = self.count
        if self.count == self.capacity:
            if self.ranks_before(one, self.heap[0]):
                self.sift_down(self.count, one)
        else:
            while i > 0 and self.ranks_before(self.heap[(i - 1) // 2], one):
                self.heap[i] = self.heap[(i - 1) // 2]
                i = (i - 1) // 2
            self.heap[i] = one
            self.count += 1
        if self.count == self.capacity:
            self.threshold = self.heap[0].score

    cdef void sift_down(self, Py_ssize_t count, Scored one) noexcept nogil:
        """Replace the root of the heap's first `count` items."""
        cdef Py_ssize_t i = 0, child = 1
        while child < count:
            child += child + 1 < count and self.ranks_before(self.heap[child], self.heap[child + 1])
            if not self.ranks_before(one, self.heap[child]):
                break
            self.heap[i] = self.heap[child]
            i, child = child, 2 * child + 1
        self.heap[i] = one

    cdef void clear(self) noexcept nogil:
        """Empty the heap and zero its items."""
        cdef Py_ssize_t i
        for i in range(self.count):
            self.heap[i] = Scored(0.0, 0)
        self.count, self.threshold = 0, 0.0

    cdef list drain(self, double unit):
        """Return the items, best first, with their scores divided by `unit`, and clear the heap."""
        cdef Py_ssize_t i
        cdef Scored last
        for i in range(self.count - 1, 0, -1):  # heapsort
            last = self.heap[i]
            self.heap[i] = self.heap[0]
            self.sift_down(i, last)
        answer = [(self.heap[i].item, self.heap[i].score / unit) for i in range(self.count)]
        self.clear()
        return answer

    def residue(self):
        """Return the number of items plus that of nonzero elements: 0 for a heap that was cleared."""
        cdef Py_ssize_t i, count = self.count
        for i in range(self.capacity):
            count += self.heap[i].score != 0.0 or self.heap[i].item != 0
        return count


cdef inline bint precedes(const Candidate *one, const Candidate *other, const int64_t *order) noexcept nogil:
    if one.key != other.key:
        return one.key < other.key
    return order[one.code] < order[other.code]


cdef inline void swap_candidates(Candidate *one, Candidate *other) noexcept nogil:
    one[0], other[0] = other[0], one[0]


cdef void smallest_first(Candidate *candidates, Py_ssize_t count, Py_ssize_t k, const int64_t *order) noexcept nogil:
    """Reorder the candidates: the k smallest first, otherwise unsorted.

    Equal keys go by `order[code]`, which differs for each code. Hoare's quickselect, median of three.
    """
    cdef Py_ssize_t low = 0, high = count - 1, middle, i, j
    cdef Candidate pivot
    while low < high:
        middle = (low + high) >> 1
        if precedes(&candidates[middle], &candidates[low], order):
            swap_candidates(&candidates[low], &candidates[middle])
        if precedes(&candidates[high], &candidates[low], order):
            swap_candidates(&candidates[low], &candidates[high])
        if precedes(&candidates[high], &candidates[middle], order):
            swap_candidates(&candidates[middle], &candidates[high])
        pivot = candidates[middle]
        i, j = low, high
        while i <= j:
            while precedes(&candidates[i], &pivot, order):
                i += 1
            while precedes(&pivot, &candidates[j], order):
                j -= 1
            if i <= j:
                swap_candidates(&candidates[i], &candidates[j])
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return
