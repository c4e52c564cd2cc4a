"""Row ids: for each basket of the histories, the id of its row in a store.

A basket that is new or has changed has the id 0 until it is given one.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.history cimport Histories


@cython.final
cdef class RowIds:
    """A row of ids per user, as long as the user's history."""

    cdef readonly JaggedArray rows

    def __cinit__(self):
        self.rows = JaggedArray(sizeof(int64_t))

    def splice(self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t removed, Py_ssize_t inserted):
        """Follow a change of a history; return the ids of the baskets removed, except zeros."""
        cdef Py_ssize_t i
        self.rows.add_rows(user + 1)
        assert 0 <= position <= position + removed <= self.rows.length(user), "a change outside the history"
        cdef int64_t *ids = <int64_t *> self.rows.first(user) + position
        dropped = [ids[i] for i in range(removed) if ids[i]]
        self.rows.close_gap(user, position, removed)
        memset(self.rows.open_gap(user, position, inserted), 0, inserted * sizeof(int64_t))
        return dropped

    def put(self, Py_ssize_t user, Py_ssize_t position, int64_t row_id):
        """Set the id of a basket."""
        assert 0 <= position < self.rows.length(user), "no such basket"
        (<int64_t *> self.rows.first(user))[position] = row_id

    def load(self, const int64_t[::1] users, const int64_t[::1] ends, const int64_t[::1] ids):
        """Set the ids of new users' baskets: user after user, up to the `ends`."""
        cdef Py_ssize_t i, first = 0, most = 0
        cdef void *row
        assert len(users) == len(ends), "equally long"
        for i in range(len(users)):
            most = max(most, users[i] + 1)
        with nogil:
            self.rows.add_rows(most)
            for i in range(users.shape[0]):
                row = self.rows.open_gap(users[i], 0, ends[i] - first)
                if ends[i] > first:
                    memcpy(row, &ids[first], (ends[i] - first) * sizeof(int64_t))
                first = ends[i]

    def of(self, Py_ssize_t user, Py_ssize_t first, end=None):
        """Return the ids of a user's baskets from a position on, up to another or to the last."""
        cdef Py_ssize_t i, stop = self.rows.length(user) if end is None else end
        assert 0 <= first <= stop <= self.rows.length(user), "no such baskets"
        cdef int64_t *ids = <int64_t *> self.rows.first(user)
        return [ids[i] for i in range(first, stop)]

    def missing(self, Py_ssize_t user, Py_ssize_t first):
        """Return the positions, from `first` on, of baskets without an id, and the count of all baskets."""
        cdef int64_t *ids = <int64_t *> self.rows.first(user)
        cdef Py_ssize_t i
        return [i for i in range(first, self.rows.length(user)) if ids[i] == 0], self.rows.length(user)

    def drop_orphans(self, Histories histories):
        """Remove and return the ids of users without a history."""
        cdef int64_t *ids
        cdef Py_ssize_t user, i
        cdef list dropped = []
        for user in range(self.rows.count):
            if self.rows.length(user) and (user >= histories.baskets.count or not histories.baskets.length(user)):
                ids = <int64_t *> self.rows.first(user)
                dropped += [ids[i] for i in range(self.rows.length(user))]
                self.rows.clear_row(user)
        return dropped
