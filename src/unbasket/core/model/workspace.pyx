"""The work space of a fold: dense over all items, clean between folds."""

cimport cython
from libc.stdint cimport uint32_t

from unbasket.core.memory.buffers cimport give_back, grown


@cython.final
cdef class FoldWorkspace:
    """Per item: its level as of the last group that held it, and that group's number (from 1; 0: none so far).

    `touched` lists the `count` items that are not clean; `groups` is how many groups were folded.
    """

    def __dealloc__(self):
        give_back(self.levels, self.room * sizeof(Level))
        give_back(self.touched, self.room * sizeof(uint32_t))

    cdef int widen(self, Py_ssize_t items) except -1 nogil:
        """Make room for item codes below `items`; between folds only."""
        assert self.count == 0, "a fold is under way"
        if items > self.room:
            items += items // 4
            self.levels = <Level *> grown(self.levels, self.room, items, sizeof(Level))
            self.touched = <uint32_t *> grown(self.touched, self.room, items, sizeof(uint32_t))
            self.room = items
        return 0

    cdef int clean(self) except -1 nogil:
        """Wipe the touched items."""
        cdef Py_ssize_t i
        cdef Level *level
        for i in range(self.count):
            level = &self.levels[self.touched[i]]
            level.value, level.last = 0.0, 0
            self.touched[i] = 0
        self.count = self.groups = 0
        return 0
