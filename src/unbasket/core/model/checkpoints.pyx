"""Checkpoints: states of the fold, saved at the start of a group, from which a fold resumes.

Checkpoints are CHECKPOINT_EVERY baskets apart, so only long histories have any. A checkpoint is kept while the end of
the history is near in proportion to how round its number is (the ruler function). A history of n groups thus keeps
O(log n) of them, dense at its end. A change at position p finds a checkpoint at most 2 (|H| - p) + CHECKPOINT_EVERY
baskets before p: the replay is O(|H| - p), the paper's bound. Deleting a history from its end meets sparser
checkpoints, and each replay adds dense ones again: O(log |H|) amortized.
"""

cimport cython
from libc.stdint cimport int32_t
from libc.string cimport memset

from unbasket.core.memory.buffers cimport allocated, give_back, grown
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport Checkpoint, FoldWorkspace, Rule, count_groups, fold_group
from unbasket.core.model.history cimport Histories, History

CHECKPOINT_EVERY = 256  # shorter histories are replayed from the start, in a few microseconds


cpdef bint worth_keeping(Py_ssize_t group, Py_ssize_t groups, Py_ssize_t stride) noexcept nogil:
    """Return whether a history of `groups` groups keeps a checkpoint at the start of this one."""
    cdef Py_ssize_t number = group // stride
    return group != 0 and group % stride == 0 and groups - group < 2 * stride * (number & -number)


@cython.final
cdef class Checkpoints:
    """A chain of checkpoints per user, newest first."""

    def __cinit__(self):
        self.levels = JaggedArray(sizeof(SavedLevel))
        self.size = 1
        self.table = <Checkpoint *> allocated(self.size, sizeof(Checkpoint))

    def __dealloc__(self):
        give_back(self.newest, self.user_room * sizeof(int32_t))
        give_back(self.table, self.size * sizeof(Checkpoint))

    cdef int admit(self, Py_ssize_t users) except -1 nogil:
        """Make room for user codes below `users`."""
        if users > self.user_room:
            self.newest = <int32_t *> grown(self.newest, self.user_room, users, sizeof(int32_t))
            self.user_room = users

    cdef int fold(self, Histories histories, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil:
        """Fold a user's history into a clean workspace, from the newest checkpoint on; save and drop checkpoints."""
        cdef History history
        cdef Checkpoint state
        cdef Py_ssize_t groups, resumed
        histories.of(user, &history)
        space.widen(histories.item_room)
        self.restore(user, space, &state)
        groups = state.groups + count_groups(&history, state.baskets, rule)
        resumed = state.groups
        while state.baskets < history.length:
            if state.groups > resumed and worth_keeping(state.groups, groups, rule.stride):
                self.save(user, &state, space)
            fold_group(&history, &state, rule, space)
        return self.thin(user, groups, rule.stride)

    cdef int peek(self, Histories histories, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil:
        """Fold like `fold`, without changing checkpoints."""
        cdef History history
        cdef Checkpoint state
        histories.of(user, &history)
        space.widen(histories.item_room)
        self.restore(user, space, &state)
        while state.baskets < history.length:
            fold_group(&history, &state, rule, space)

    cdef int drop_from(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        """Drop the checkpoints that a change at `position` invalidates.

        A checkpoint right at the position goes too: under varying groups, a new basket may join the group before it.
        """
        assert 0 <= user < self.user_room, "no such user"
        cdef Py_ssize_t checkpoint = self.newest[user]
        while checkpoint != 0 and self.table[checkpoint].baskets >= position:
            self.newest[user] = <int32_t> self.table[checkpoint].older
            self._release(checkpoint)
            checkpoint = self.newest[user]

    cdef int thin(self, Py_ssize_t user, Py_ssize_t groups, Py_ssize_t stride) except -1 nogil:
        """Drop the checkpoints that are no longer worth keeping."""
        cdef Py_ssize_t newer = 0, checkpoint = self.newest[user], older
        while checkpoint != 0:
            older = self.table[checkpoint].older
            if worth_keeping(self.table[checkpoint].groups, groups, stride):
                newer = checkpoint
            else:
                if newer == 0:
                    self.newest[user] = <int32_t> older
                else:
                    self.table[newer].older = older
                self._release(checkpoint)
            checkpoint = older

    cdef int save(self, Py_ssize_t user, const Checkpoint *state, FoldWorkspace space) except -1 nogil:
        """Save the state of a fold at the start of a group, with the levels of the workspace."""
        cdef Py_ssize_t checkpoint = self._claim(), i
        cdef SavedLevel *saved
        self.table[checkpoint] = state[0]
        self.table[checkpoint].older = self.newest[user]
        self.newest[user] = <int32_t> checkpoint
        self.levels.reserve(checkpoint, space.count)
        for i in range(space.count):
            saved = <SavedLevel *> self.levels.append(checkpoint)
            saved.item = space.touched[i]
            saved.value = space.levels[saved.item].value
            saved.last = space.levels[saved.item].last

    cdef int restore(self, Py_ssize_t user, FoldWorkspace space, Checkpoint *state) except -1 nogil:
        """Copy a user's newest checkpoint into a clean workspace and `state`; without one, `state` is the start."""
        cdef Py_ssize_t checkpoint = self.newest[user], i
        cdef SavedLevel *saved
        state[0] = self.table[checkpoint]
        if checkpoint == 0:
            return 0
        assert 0 < checkpoint < self.size and space.count == 0, "no such checkpoint, or a fold is under way"
        saved = <SavedLevel *> self.levels.first(checkpoint)
        space.count = self.levels.length(checkpoint)
        space.groups = space.horizon = state.groups
        for i in range(space.count):
            assert saved[i].item < space.room, "no such item"
            space.touched[i] = saved[i].item
            space.levels[saved[i].item].value = saved[i].value
            space.levels[saved[i].item].last = saved[i].last

    cdef Py_ssize_t _claim(self) except -1 nogil:
        """Return an unused checkpoint; double the table if all are in use."""
        cdef Py_ssize_t checkpoint, old = self.size
        if self.unused == 0:
            self.levels.add_rows(2 * old)
            self.table = <Checkpoint *> grown(self.table, old, 2 * old, sizeof(Checkpoint))
            self.size = 2 * old
            for checkpoint in range(old, 2 * old - 1):
                self.table[checkpoint].older = checkpoint + 1
            self.unused = old
        checkpoint = self.unused
        self.unused = self.table[checkpoint].older
        return checkpoint

    cdef int _release(self, Py_ssize_t checkpoint) except -1 nogil:
        self.levels.clear_row(checkpoint)
        memset(&self.table[checkpoint], 0, sizeof(Checkpoint))
        self.table[checkpoint].older = self.unused
        self.unused = checkpoint
