"""A number for each basket, in the order of the histories: what somebody keeps beside them, such as a store its rows.

A basket that is new or has changed has the number 0 until it is given one.
"""

cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from unbasket.core.model.history cimport Histories
from unbasket.core.memory.jagged cimport JaggedArray


@cython.final
cdef class RowIds:
    """JaggedArray of numbers, one per user, as long as the user's history."""

    cdef readonly JaggedArray rows

    def __cinit__(self):
        self.rows = JaggedArray(sizeof(int64_t))

    def splice(self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t removed, Py_ssize_t inserted):
        """Follow a change of a history; returns the numbers of the baskets that went, if they had one."""
        cdef Py_ssize_t i
        self.rows.add_rows(user + 1)
        assert 0 <= position <= position + removed <= self.rows.length(user), "a change outside the history"
        cdef int64_t *numbers = <int64_t *> self.rows.first(user) + position
        gone = [numbers[i] for i in range(removed) if numbers[i]]
        self.rows.close_gap(user, position, removed)
        memset(self.rows.open_gap(user, position, inserted), 0, inserted * sizeof(int64_t))
        return gone

    def put(self, Py_ssize_t user, Py_ssize_t position, int64_t number):
        """Give a basket its number."""
        assert 0 <= position < self.rows.length(user), "no such basket"
        (<int64_t *> self.rows.first(user))[position] = number

    def load(self, const int64_t[::1] users, const int64_t[::1] ends, const int64_t[::1] numbers):
        """Give the baskets of new users their numbers: user after user, ending where `ends` says."""
        cdef Py_ssize_t i, first = 0, most = 0
        cdef void *place
        assert len(users) == len(ends), "equally long"
        for i in range(len(users)):
            most = max(most, users[i] + 1)
        with nogil:
            self.rows.add_rows(most)
            for i in range(users.shape[0]):
                place = self.rows.open_gap(users[i], 0, ends[i] - first)
                if ends[i] > first:
                    memcpy(place, &numbers[first], (ends[i] - first) * sizeof(int64_t))
                first = ends[i]

    def of(self, Py_ssize_t user, Py_ssize_t first, end=None):
        """The numbers of a user's baskets from a position on, to the last or to another position."""
        cdef Py_ssize_t i, stop = self.rows.length(user) if end is None else end
        assert 0 <= first <= stop <= self.rows.length(user), "no such baskets"
        cdef int64_t *numbers = <int64_t *> self.rows.first(user)
        return [numbers[i] for i in range(first, stop)]

    def unnumbered(self, Py_ssize_t user, Py_ssize_t first):
        """The positions, from one on, of the baskets without a number, and the count of all baskets."""
        cdef int64_t *numbers = <int64_t *> self.rows.first(user)
        cdef Py_ssize_t i
        return [i for i in range(first, self.rows.length(user)) if numbers[i] == 0], self.rows.length(user)

    def drop_ownerless(self, Histories histories):
        """Forget the numbers of all users who have no history any longer; returns them."""
        cdef int64_t *numbers
        cdef Py_ssize_t user, i
        cdef list dropped = []
        for user in range(self.rows.count):
            if self.rows.length(user) and (user >= histories.baskets.count or not histories.baskets.length(user)):
                numbers = <int64_t *> self.rows.first(user)
                dropped += [numbers[i] for i in range(self.rows.length(user))]
                self.rows.clear_row(user)
        return dropped
