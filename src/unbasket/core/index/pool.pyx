"""The pool: a bottom-k sample of the users, among whom neighbors are searched, and the waiting list of all others.

Every user has a priority, a number that depends on the user's id alone. The users with the smallest priorities are the
pool, so the pool depends on the present users, and not on the order in which users came and went.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from unbasket.core.memory.buffers cimport give_back, grown


@cython.final
cdef class Pool:
    """All users in two heaps: the pool, with the largest priority on top, and the waiting list, with the smallest.

    The tops are the next to leave the pool and the next to enter it.
    """

    def __cinit__(self, Py_ssize_t size, precedes):
        self.size = size
        self._precedes = precedes

    def __dealloc__(self):
        give_back(self.priorities, self.user_room * sizeof(uint64_t))
        give_back(self.positions, self.user_room * sizeof(uint32_t))
        give_back(self.heaps, self.user_room * sizeof(uint32_t))

    cdef int admit(self, Py_ssize_t users) except -1 nogil:
        """Make room for user codes below `users`."""
        if users > self.user_room:
            self.priorities = <uint64_t *> grown(self.priorities, self.user_room, users, sizeof(uint64_t))
            self.positions = <uint32_t *> grown(self.positions, self.user_room, users, sizeof(uint32_t))
            self.heaps = <uint32_t *> grown(self.heaps, self.user_room, users, sizeof(uint32_t))
            self.user_room = users

    cpdef bint holds(self, Py_ssize_t user) except -1 nogil:
        assert 0 <= user < self.user_room, "no such user"
        return 0 < self.positions[user] <= self.size

    cdef Py_ssize_t add(self, uint32_t user, uint64_t priority) except -2:
        """Add a user; return the user pushed out of the pool, or -1."""
        assert user < self.user_room and self.positions[user] == 0, "no such user, or there already"
        cdef uint32_t largest
        self.priorities[user] = priority
        self.count += 1
        if self.count > self.size and self.is_before(user, self.heaps[0]):
            largest = self.heaps[0]
            self._put(0, user)
            self._sift_down(0)
            self._put(self.count - 1, largest)
            self._sift_up(self.count - 1)
            return largest
        self._put(self.count - 1, user)
        self._sift_up(self.count - 1)
        return -1

    cdef Py_ssize_t remove(self, uint32_t user) except -2:
        """Remove a user; return the user who enters the pool instead, or -1."""
        assert user < self.user_room and self.positions[user] != 0, "no such user"
        cdef Py_ssize_t position = self.positions[user] - 1, entrant = -1
        if position < self.size < self.count:
            entrant = self.heaps[self.size]
            self._put(position, <uint32_t> entrant)
            self._sift(position)
            position = self.size
        self.priorities[user] = self.positions[user] = 0
        self.count -= 1
        cdef uint32_t last = self.heaps[self.count]
        self.heaps[self.count] = 0
        if position < self.count:
            self._put(position, last)
            self._sift(position)
        return entrant

    cdef bint is_before(self, uint32_t user, uint32_t other) except -1:
        """Return whether a user comes before another in the order of priorities."""
        if self.priorities[user] != self.priorities[other]:
            return self.priorities[user] < self.priorities[other]
        return self._precedes(user, other)

    cdef bint _belongs_above(self, Py_ssize_t position, Py_ssize_t other) except -1:
        """Return whether the user at a position belongs above the one at another position of the same heap."""
        if position < self.size:
            return self.is_before(self.heaps[other], self.heaps[position])
        return self.is_before(self.heaps[position], self.heaps[other])

    cdef int _put(self, Py_ssize_t position, uint32_t user) except -1:
        assert 0 <= position < self.user_room, "no such position"
        self.heaps[position] = user
        self.positions[user] = <uint32_t> position + 1

    cdef int _sift(self, Py_ssize_t position) except -1:
        """Move the user at a position to the right position of the heap."""
        return self._sift_down(self._sift_up(position))

    cdef Py_ssize_t _sift_up(self, Py_ssize_t position) except -1:
        """Move the user at a position up in the heap; return the new position."""
        cdef Py_ssize_t first = 0 if position < self.size else self.size, above
        while position > first:
            above = first + (position - first - 1) // 2
            if not self._belongs_above(position, above):
                break
            self._swap(position, above)
            position = above
        return position

    cdef int _sift_down(self, Py_ssize_t position) except -1:
        """Move the user at a position down in the heap."""
        cdef Py_ssize_t first = 0 if position < self.size else self.size, below
        cdef Py_ssize_t end = min(self.size, self.count) if position < self.size else self.count
        while True:
            below = first + 2 * (position - first) + 1
            if below + 1 < end and self._belongs_above(below + 1, below):
                below += 1
            if below >= end or not self._belongs_above(below, position):
                return 0
            self._swap(position, below)
            position = below

    cdef int _swap(self, Py_ssize_t position, Py_ssize_t other) except -1:
        cdef uint32_t user = self.heaps[position]
        self._put(position, self.heaps[other])
        return self._put(other, user)

    def knows(self, Py_ssize_t user):
        """Return whether a user is in the pool or on the waiting list."""
        return 0 <= user < self.user_room and self.positions[user] != 0

    def priority_of(self, Py_ssize_t user):
        """Return a user's priority; 0 of an unknown user."""
        assert 0 <= user < self.user_room, "no such user"
        return self.priorities[user]

    def last(self):
        """Return the user with the largest priority of a full pool; -1 if the pool has room."""
        return self.heaps[0] if self.count >= self.size else -1
