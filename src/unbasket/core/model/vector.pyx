"""A vector in fixed point, as the index holds those of users: its entries are items and weights above zero."""

cimport cython
from libc.stdint cimport uint32_t

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back


@cython.final
cdef class Vector:
    """A vector on its own: a query, or a copy of a user's."""

    def __init__(self, const uint32_t[::1] items, const uint32_t[::1] weights):
        cdef Py_ssize_t i
        assert self.entries == NULL and len(items) == len(weights), "one weight for each item"
        self.room = len(items)
        self.entries = <VectorEntry *> allocated(self.room, sizeof(VectorEntry))
        for i in range(self.room):
            self.add(items[i], weights[i])

    @staticmethod
    cdef Vector of(Py_ssize_t room):
        """A vector without entries, and with room for some."""
        cdef Vector vector = Vector.__new__(Vector)
        vector.entries = <VectorEntry *> allocated(room, sizeof(VectorEntry))
        vector.room = room
        return vector

    def __dealloc__(self):
        give_back(self.entries, self.room * sizeof(VectorEntry))

    cdef int add(self, uint32_t item, uint32_t weight) except -1 nogil:
        """Add an entry, unless its weight was rounded to zero."""
        assert self.length < self.room, "no room"
        if weight != 0:
            self.entries[self.length] = VectorEntry(item, weight, 0)
            self.length += 1
        return 0

    def __len__(self):
        return self.length

    @property
    def items(self):
        """The codes of the items."""
        return np.array([self.entries[i].item for i in range(self.length)], np.uint32)

    @property
    def weights(self):
        """The weights, multiples of 2^-24."""
        return np.array([self.entries[i].weight for i in range(self.length)], np.uint32)
