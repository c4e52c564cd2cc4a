"""The n best of the items that are offered, equally good ones by a second key."""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, give_back


@cython.final
cdef class TopN:
    """A heap with the last of the best at the top: no item comes after the one at (place - 1) // 2.

    Once n items are there, none with a score below the `threshold` is wanted any more.
    """

    def __dealloc__(self):
        give_back(self.heap, self.room * sizeof(Scored))

    cdef int reserve(self, Py_ssize_t n, const int64_t *order) except -1 nogil:
        """Let there be room for the n best, n > 0. Of equal scores, the item with the smaller `order` comes first."""
        assert n > 0 and self.count == 0, "nothing to choose, or not the first to do it"
        if n != self.room:
            give_back(self.heap, self.room * sizeof(Scored))
            self.heap, self.room = NULL, 0
            self.heap = <Scored *> allocated(n, sizeof(Scored))
            self.room = n
        self.order = order
        return 0

    cdef void swap(self, TopN other) noexcept nogil:
        """Let the other have what is on push here, and have what is on push there."""
        self.heap, other.heap = other.heap, self.heap
        self.order, other.order = other.order, self.order
        self.threshold, other.threshold = other.threshold, self.threshold
        self.count, other.count = other.count, self.count
        self.room, other.room = other.room, self.room

    cdef void insert(self, Scored one) noexcept nogil:
        """Put an item among the best; if they are n already, in place of the last of them, if it comes before that."""
        cdef Py_ssize_t place = self.count
        if self.count == self.room:
            if self.ranks_before(one, self.heap[0]):
                self.sift_down(self.count, one)
        else:
            while place > 0 and self.ranks_before(self.heap[(place - 1) // 2], one):
                self.heap[place] = self.heap[(place - 1) // 2]
                place = (place - 1) // 2
            self.heap[place] = one
            self.count += 1
        if self.count == self.room:
            self.threshold = self.heap[0].score

    cdef void sift_down(self, Py_ssize_t count, Scored one) noexcept nogil:
        """Replace the item at the top of a heap of this size."""
        cdef Py_ssize_t place = 0, other = 1
        while other < count:
            other += other + 1 < count and self.ranks_before(self.heap[other], self.heap[other + 1])
            if not self.ranks_before(one, self.heap[other]):
                break
            self.heap[place] = self.heap[other]
            place, other = other, 2 * other + 1
        self.heap[place] = one

    cdef void clear(self) noexcept nogil:
        """Forget what was offered."""
        cdef Py_ssize_t i
        for i in range(self.count):
            self.heap[i] = Scored(0.0, 0)
        self.count, self.threshold = 0, 0.0

    cdef list drain(self, double unit):
        """The items and their scores as multiples of a unit, best first; they are forgotten here."""
        cdef Py_ssize_t i
        cdef Scored last
        for i in range(self.count - 1, 0, -1):
            last = self.heap[i]
            self.heap[i] = self.heap[0]
            self.sift_down(i, last)
        answer = [(self.heap[i].item, self.heap[i].score / unit) for i in range(self.count)]
        self.clear()
        return answer

    def residue(self):
        """How many places are not zero, though nothing is on push."""
        cdef Py_ssize_t i, count = self.count
        for i in range(self.room):
            count += self.heap[i].score != 0.0 or self.heap[i].item != 0
        return count


cdef inline bint precedes(const Candidate *one, const Candidate *other, const int64_t *order) noexcept nogil:
    if one.key != other.key:
        return one.key < other.key
    return order[one.code] < order[other.code]


cdef inline void swap(Candidate *one, Candidate *other) noexcept nogil:
    one[0], other[0] = other[0], one[0]


cdef void smallest_first(Candidate *candidates, Py_ssize_t count, Py_ssize_t k, const int64_t *order) noexcept nogil:
    """Reorder the candidates so that the k smallest come first (in no order).

    Equal keys go by `order[code]`, which is different for every code. Hoare's quickselect, median of three.
    """
    cdef Py_ssize_t low = 0, high = count - 1, middle, i, j
    cdef Candidate pivot
    while low < high:
        middle = (low + high) >> 1
        if precedes(&candidates[middle], &candidates[low], order):
            swap(&candidates[low], &candidates[middle])
        if precedes(&candidates[high], &candidates[low], order):
            swap(&candidates[low], &candidates[high])
        if precedes(&candidates[high], &candidates[middle], order):
            swap(&candidates[middle], &candidates[high])
        pivot = candidates[middle]
        i, j = low, high
        while i <= j:
            while precedes(&candidates[i], &pivot, order):
                i += 1
            while precedes(&pivot, &candidates[j], order):
                j -= 1
            if i <= j:
                swap(&candidates[i], &candidates[j])
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return
