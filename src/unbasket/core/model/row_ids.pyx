"""Row ids: for each basket of the histories, the id of its row in a store.

A basket that is new or has changed has the id 0 until it is given one.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.history cimport Histories


cdef inline bint has_zero(const int64_t *ids, Py_ssize_t first, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(first, end):
        if ids[i] == 0:
            return True
    return False


@cython.final
cdef class RowIds:
    """A row of ids per user, as long as the user's history."""

    cdef readonly JaggedArray rows

    def __cinit__(self):
        self.rows = JaggedArray(sizeof(int64_t))

    def follow(self, list changes):
        """Follow changes of histories, in order.

        Returns the ids of the baskets removed, except zeros, and the first changed position of each changed user.
        """
        cdef Py_ssize_t user, position, removed, inserted
        cdef list dropped = []
        cdef dict changed = {}
        for user, position, removed, inserted in changes:
            self._splice(user, position, removed, inserted, dropped)
            changed[user] = min(position, changed.get(user, position))
        return dropped, changed

    cdef int _splice(
        self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t removed, Py_ssize_t inserted, list dropped
    ) except -1:
        cdef Py_ssize_t i
        self.rows.add_rows(user + 1)
        assert 0 <= position <= position + removed <= self.rows.length(user), "a change outside the history"
        cdef int64_t *ids = <int64_t *> self.rows.first(user) + position
        for i in range(removed):
            if ids[i]:
                dropped.append(ids[i])
        self.rows.close_gap(user, position, removed)
        memset(self.rows.open_gap(user, position, inserted), 0, inserted * sizeof(int64_t))

    def put(self, list places, int64_t first):
        """Give ids, from `first` on, to baskets: a place is a user, a position, and the shift of a row."""
        cdef Py_ssize_t user, position
        for user, position, _ in places:
            assert 0 <= position < self.rows.length(user), "no such basket"
            (<int64_t *> self.rows.first(user))[position] = first
            first += 1

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

    def missing_last(self, dict changed):
        """Return the places of baskets without an id that are last in their history, for positions as of `follow`.

        The second result has the positions of users with other baskets without an id, whose places are not in the first.
        """
        cdef Py_ssize_t user, first, last
        cdef int64_t *ids
        cdef list places = []
        cdef dict others = {}
        for user, first in changed.items():
            ids, last = <int64_t *> self.rows.first(user), self.rows.length(user)
            while last > first and ids[last - 1] == 0:
                last -= 1
            if has_zero(ids, first, last):
                others[user] = first
            else:
                places += [(user, position, 0) for position in range(last, self.rows.length(user))]
        return places, others

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
