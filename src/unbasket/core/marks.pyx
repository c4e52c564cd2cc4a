"""Marks: states of the fold saved at the start of a group, to rewind to.

Only long histories have any: marks are MARK_EVERY baskets apart. A mark is kept while the end of the history is near
in proportion to how round its number is (the ruler function), so a history of n groups keeps O(log n) of them, dense
at its end. A change at position p finds a mark at most 2 (|H| - p) + MARK_EVERY baskets before p: the replay is
O(|H| - p), the paper's bound. Deletions that eat a history up from its end meet sparser marks, whose replay sets dense
ones again: O(log |H|) amortised.
"""

cimport cython
from libc.stdint cimport int32_t
from libc.string cimport memset

from unbasket.core.buffers cimport allocated, give_back, grown
from unbasket.core.rows cimport Rows
from unbasket.core.space cimport FoldSpace

MARK_EVERY = 256  # shorter histories are replayed from the start, in a few microseconds


cpdef bint worth_keeping(Py_ssize_t group, Py_ssize_t groups, Py_ssize_t stride) noexcept nogil:
    """Whether a history of that many groups keeps a mark at the start of this one."""
    cdef Py_ssize_t number = group // stride
    return group != 0 and group % stride == 0 and groups - group < 2 * stride * (number & -number)


@cython.final
cdef class Marks:
    """A chain of marks per user, newest first; mark numbers start at 1, and 0 ends a chain.

    `table` has, per mark, the next older one and what lies before it: baskets, items, groups. `levels` has the
    state itself. Unused marks are chained from `unused`.
    """

    def __cinit__(self):
        self.levels = Rows(sizeof(SavedLevel))
        self.size = 1
        self.table = <Mark *> allocated(self.size, sizeof(Mark))

    def __dealloc__(self):
        give_back(self.newest, self.user_room * sizeof(int32_t))
        give_back(self.table, self.size * sizeof(Mark))

    cdef int admit(self, Py_ssize_t users) except -1 nogil:
        """Make room for user codes below `users`."""
        if users > self.user_room:
            self.newest = <int32_t *> grown(self.newest, self.user_room, users, sizeof(int32_t))
            self.user_room = users
        return 0

    cdef int drop_from(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        """Drop the marks that a change at `position` makes wrong.

        A mark right at the position goes too: under varying groups an inserted basket may join the group before it.
        """
        assert 0 <= user < self.user_room, "no such user"
        cdef Py_ssize_t mark = self.newest[user]
        while mark != 0 and self.table[mark].baskets >= position:
            self.newest[user] = <int32_t> self.table[mark].older
            self._release(mark)
            mark = self.newest[user]
        return 0

    cdef int thin(self, Py_ssize_t user, Py_ssize_t groups, Py_ssize_t stride) except -1 nogil:
        """Drop the marks that are no longer worth keeping."""
        cdef Py_ssize_t newer = 0, mark = self.newest[user], older
        while mark != 0:
            older = self.table[mark].older
            if worth_keeping(self.table[mark].groups, groups, stride):
                newer = mark
            else:
                if newer == 0:
                    self.newest[user] = <int32_t> older
                else:
                    self.table[newer].older = older
                self._release(mark)
            mark = older
        return 0

    cdef int save(self, Py_ssize_t user, const Mark *state, FoldSpace space) except -1 nogil:
        """Set a mark at the start of a group: how far the fold has come, and the levels that it has touched so far."""
        cdef Py_ssize_t mark = self._claim(), i
        cdef SavedLevel *saved
        self.table[mark] = state[0]
        self.table[mark].older = self.newest[user]
        self.newest[user] = <int32_t> mark
        self.levels.reserve(mark, space.count)
        for i in range(space.count):
            saved = <SavedLevel *> self.levels.append(mark)
            saved.item = space.touched[i]
            saved.value = space.levels[saved.item].value
            saved.last = space.levels[saved.item].last
        return 0

    cdef int restore(self, Py_ssize_t mark, FoldSpace space) except -1 nogil:
        """Put a mark's state into a clean work space."""
        assert 0 < mark < self.size and space.count == 0, "no such mark, or a fold is under way"
        cdef SavedLevel *saved = <SavedLevel *> self.levels.first(mark)
        cdef Py_ssize_t i
        space.count = self.levels.length(mark)
        space.groups = self.table[mark].groups
        for i in range(space.count):
            assert saved[i].item < space.room, "no such item"
            space.touched[i] = saved[i].item
            space.levels[saved[i].item].value = saved[i].value
            space.levels[saved[i].item].last = saved[i].last
        return 0

    cdef Py_ssize_t _claim(self) except -1 nogil:
        """The number of an unused mark."""
        cdef Py_ssize_t mark, old = self.size
        if self.unused == 0:
            self.levels.add_rows(2 * old)
            self.table = <Mark *> grown(self.table, old, 2 * old, sizeof(Mark))
            self.size = 2 * old
            for mark in range(old, 2 * old - 1):
                self.table[mark].older = mark + 1
            self.unused = old
        mark = self.unused
        self.unused = self.table[mark].older
        return mark

    cdef int _release(self, Py_ssize_t mark) except -1 nogil:
        self.levels.clear_row(mark)
        memset(&self.table[mark], 0, sizeof(Mark))
        self.table[mark].older = self.unused
        self.unused = mark
        return 0
