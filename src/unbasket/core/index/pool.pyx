"""The pool: the users among whom neighbors are looked for, and the line of those who would take their places.

Every user has a lot, a number that depends on the user's id and on nothing else. The users with the smallest lots are
the pool, so who is in it depends on who is there, and not on the order in which they came and went.
"""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from unbasket.core.memory.buffers cimport give_back, grown


@cython.final
cdef class Pool:
    """All users in two heaps, one behind the other in `line`: the pool of at most `size` users, with the largest lot
    on top, and those who wait, with the smallest on top. So the next to leave and the next to enter are at hand.

    `places` says where in the line a user is, from 1 on; 0 is nowhere. `precedes` decides between two users of equal
    lots.
    """

    def __cinit__(self, Py_ssize_t size, precedes):
        self.size = size
        self._precedes = precedes

    def __dealloc__(self):
        give_back(self.lots, self.user_room * sizeof(uint64_t))
        give_back(self.places, self.user_room * sizeof(uint32_t))
        give_back(self.line, self.user_room * sizeof(uint32_t))

    cdef int admit(self, Py_ssize_t users) except -1 nogil:
        """Make room for user codes below `users`."""
        if users > self.user_room:
            self.lots = <uint64_t *> grown(self.lots, self.user_room, users, sizeof(uint64_t))
            self.places = <uint32_t *> grown(self.places, self.user_room, users, sizeof(uint32_t))
            self.line = <uint32_t *> grown(self.line, self.user_room, users, sizeof(uint32_t))
            self.user_room = users
        return 0

    cdef bint holds(self, Py_ssize_t user) except -1 nogil:
        """Whether a user is in the pool."""
        assert 0 <= user < self.user_room, "no such user"
        return 0 < self.places[user] <= self.size

    cdef Py_ssize_t add(self, uint32_t user, uint64_t lot) except -2:
        """Add a user. Returns who leaves the pool for them, or -1."""
        assert user < self.user_room and self.places[user] == 0, "no such user, or there already"
        cdef uint32_t largest
        self.lots[user] = lot
        self.count += 1
        if self.count > self.size and self.is_before(user, self.line[0]):
            largest = self.line[0]
            self._put(0, user)
            self._sink(0)
            self._put(self.count - 1, largest)
            self._rise(self.count - 1)
            return largest
        self._put(self.count - 1, user)
        self._rise(self.count - 1)
        return -1

    cdef Py_ssize_t remove(self, uint32_t user) except -2:
        """Remove a user. Returns who enters the pool in their place, or -1."""
        assert user < self.user_room and self.places[user] != 0, "no such user"
        cdef Py_ssize_t place = self.places[user] - 1, entrant = -1
        if place < self.size < self.count:
            entrant = self.line[self.size]
            self._put(place, <uint32_t> entrant)
            self._mend(place)
            place = self.size
        self.lots[user] = self.places[user] = 0
        if place < self.count - 1:
            self._put(place, self.line[self.count - 1])
            self._wipe_last()
            self._mend(place)
        else:
            self._wipe_last()
        return entrant

    cdef bint is_before(self, uint32_t user, uint32_t other) except -1:
        """Whether a user comes before another in the order of lots."""
        if self.lots[user] != self.lots[other]:
            return self.lots[user] < self.lots[other]
        return self._precedes(user, other)

    cdef bint _belongs_above(self, Py_ssize_t place, Py_ssize_t other) except -1:
        """Whether the user at a place must be above the one at another place of the same heap."""
        if place < self.size:
            return self.is_before(self.line[other], self.line[place])
        return self.is_before(self.line[place], self.line[other])

    cdef int _put(self, Py_ssize_t place, uint32_t user) except -1:
        assert 0 <= place < self.user_room, "no such place"
        self.line[place] = user
        self.places[user] = <uint32_t> place + 1
        return 0

    cdef int _wipe_last(self) except -1:
        self.count -= 1
        self.line[self.count] = 0
        return 0

    cdef int _mend(self, Py_ssize_t place) except -1:
        """Move the user at a place, which may be wrong, to where they belong in their heap."""
        return self._sink(self._rise(place))

    cdef Py_ssize_t _rise(self, Py_ssize_t place) except -1:
        """Move a user up in their heap, past all whom they belong above; returns where they are then."""
        cdef Py_ssize_t first = 0 if place < self.size else self.size, above
        while place > first:
            above = first + (place - first - 1) // 2
            if not self._belongs_above(place, above):
                break
            self._swap(place, above)
            place = above
        return place

    cdef int _sink(self, Py_ssize_t place) except -1:
        """Move a user down in their heap, past all who belong above them."""
        cdef Py_ssize_t first = 0 if place < self.size else self.size, below
        cdef Py_ssize_t end = min(self.size, self.count) if place < self.size else self.count
        while True:
            below = first + 2 * (place - first) + 1
            if below + 1 < end and self._belongs_above(below + 1, below):
                below += 1
            if below >= end or not self._belongs_above(below, place):
                return 0
            self._swap(place, below)
            place = below

    cdef int _swap(self, Py_ssize_t place, Py_ssize_t other) except -1:
        cdef uint32_t user = self.line[place]
        self._put(place, self.line[other])
        return self._put(other, user)

    def has(self, Py_ssize_t user):
        """Whether a user is in the pool."""
        return bool(self.holds(user))

    def knows(self, Py_ssize_t user):
        """Whether a user is in the line for the pool, or in it."""
        return 0 <= user < self.user_room and self.places[user] != 0

    def priority_of(self, Py_ssize_t user):
        """A user's lot; 0 of nobody."""
        assert 0 <= user < self.user_room, "no such user"
        return self.lots[user]

    def last(self):
        """Who would have to leave a full pool for somebody with a smaller lot; -1 if it has room."""
        return self.line[0] if self.count >= self.size else -1

    def members(self):
        """The codes of the users in the pool, in no order."""
        return [self.line[place] for place in range(min(self.size, self.count))]
