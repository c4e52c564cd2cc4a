"""The smallest of many, exactly and in linear time; ties are decided by a second key."""

from libc.stdint cimport int64_t, uint32_t

from unbasket.core.buffers cimport allocated, give_back


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


def smallest(list keys, Py_ssize_t k, const int64_t[::1] order):
    """The positions of the k smallest keys, in no order; equal keys go by the order of their positions."""
    cdef Py_ssize_t count = len(keys), i
    assert 0 <= k <= count <= len(order), "as many places as keys"
    if count == 0:
        return []
    cdef Candidate *candidates = <Candidate *> allocated(count, sizeof(Candidate))
    try:
        for i in range(count):
            candidates[i] = Candidate(keys[i], <uint32_t> i, 0)
        smallest_first(candidates, count, k, &order[0])
        return [candidates[i].code for i in range(k)]
    finally:
        give_back(candidates, count * sizeof(Candidate))
