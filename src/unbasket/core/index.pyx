"""The live index: every user's vector, and for every item its postings: the users who have it.

Weights are whole multiples of 2^-24. Dot products, squared norms and sums of vectors are then exact integers, so
they do not depend on the order of summation: neither on threads, nor on codes, nor on the order of past events.
Nothing overflows: a user's weights sum to at most the size of the largest basket (each is a decayed mean of 0/1
entries) and none exceeds 1, so with baskets of at most MAX_BASKET items a squared distance stays below 2^62.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.buffers cimport allocated, give_back, grown
from unbasket.core.crowd cimport Crowd
from unbasket.core.fold cimport weight
from unbasket.core.rows cimport Rows
from unbasket.core.select cimport Candidate, smallest_first
from unbasket.core.space cimport FoldSpace
from unbasket.core.vector cimport Entry, Vector

ONE = 1 << ONE_BITS  # the fixed-point weight 1.0
MAX_BASKET = 8192


@cython.final
cdef class Index:
    """Vectors per user, postings per item, squared norms, how many users there are of each magnitude, and the crowd.

    Codes from `user_end` on have never had a vector.
    """

    def __cinit__(self, Py_ssize_t crowd_size):
        self.vectors = Rows(sizeof(Entry))
        self.postings = Rows(sizeof(Posting))
        self.crowd = Crowd(crowd_size)

    def __dealloc__(self):
        give_back(self.norm, self.user_room * sizeof(int64_t))

    cdef int make_room(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
        """Make room for user codes below `users` and item codes below `items`."""
        users = room_for(users)
        self.vectors.add_rows(users)
        self.postings.add_rows(items)
        self.crowd.admit(users, items)
        if users > self.user_room:
            self.norm = <int64_t *> grown(self.norm, self.user_room, users, sizeof(int64_t))
            self.user_room = users
        self.item_room = max(self.item_room, items)
        return 0

    cdef int settle(self, Py_ssize_t user, FoldSpace space, double group_decay) except -1 nogil:
        """Make a user's vector that of the fold in the work space: O(items of the user), not of all users.

        Items whose weight rounds to zero are not in the index. Leaves `last` zero for the items that the vector had
        before, which tells the new ones apart.
        """
        assert 0 <= user < self.user_room, "no such user"
        cdef bint is_member = self.crowd.is_member[user]
        if is_member:
            self.crowd.join(self.vector(user), self.vectors.length(user), -1)
        cdef int64_t norm = self._change_entries(user, space, group_decay)
        norm += self._add_entries(user, space, group_decay)
        self.vectors.trim(user)
        self.rank(user, norm)
        if is_member:
            self.crowd.join(self.vector(user), self.vectors.length(user), 1)
            if norm == 0:
                self.crowd.leave(<uint32_t> user)
        return 0

    cdef int64_t _change_entries(self, Py_ssize_t user, FoldSpace space, double group_decay) except -1 nogil:
        """Set the new weights of the items that the user's vector has; returns the sum of their squares."""
        cdef Entry *entries = self.vector(user)
        cdef Entry *entry
        cdef int64_t norm = 0, value
        cdef Py_ssize_t i = 0
        while i < self.vectors.length(user):
            entry = entries + i
            value = 0
            assert entry.item < space.room, "no such item"
            if space.levels[entry.item].last != 0:
                value = fixed_point(weight(space, entry.item, group_decay))
                space.levels[entry.item].last = 0
            if value == 0:
                self._remove(user, i)
                continue
            if value != entry.weight:
                entry.weight = <uint32_t> value
                (<Posting *> self.postings.first(entry.item))[entry.place].weight = entry.weight
            norm += value * value
            i += 1
        return norm

    cdef int64_t _add_entries(self, Py_ssize_t user, FoldSpace space, double group_decay) except -1 nogil:
        """Add the items that the user's vector lacks; returns the sum of their squared weights."""
        cdef int64_t norm = 0, value
        cdef Py_ssize_t i
        for i in range(space.count):
            if space.levels[space.touched[i]].last != 0:
                value = fixed_point(weight(space, space.touched[i], group_decay))
                if value != 0:
                    self.add(<uint32_t> user, space.touched[i], <uint32_t> value)
                    norm += value * value
        return norm

    cdef int add(self, uint32_t user, uint32_t item, uint32_t weight) except -1 nogil:
        """Add an entry to a vector that lacks the item."""
        cdef uint32_t number = <uint32_t> self.postings.length(item)
        (<Posting *> self.postings.append(item))[0] = Posting(user, weight)
        (<Entry *> self.vectors.append(user))[0] = Entry(item, weight, number)
        return 0

    cdef int _remove(self, Py_ssize_t user, Py_ssize_t i) except -1 nogil:
        """Remove the i-th entry of a vector. The last record of each of the two rows moves into the hole."""
        cdef Entry *entries = self.vector(user)
        cdef Entry *moved
        cdef uint32_t item = entries[i].item, number = entries[i].place
        cdef Posting *postings = <Posting *> self.postings.first(item)
        cdef Py_ssize_t last = self.postings.length(item) - 1
        assert number <= last and postings[number].user == user, "an entry without its posting"
        if number != last:
            postings[number] = postings[last]
            moved = self.vector(postings[number].user)
            while moved.item != item:
                moved += 1
            moved.place = number
        self.postings.pop(item)
        self.postings.trim(item)
        last = self.vectors.length(user) - 1
        if i != last:
            entries[i] = entries[last]
        return self.vectors.pop(user)

    cdef int rank(self, Py_ssize_t user, int64_t norm) except -1 nogil:
        """Store a user's squared norm; one of 0 says that nothing is held of the user."""
        assert 0 <= user < self.user_room, "no such user"
        if self.norm[user] != 0:
            self.population[magnitude(self.norm[user])] -= 1
        self.norm[user] = norm
        if norm != 0:
            self.population[magnitude(norm)] += 1
            self.user_end = max(self.user_end, user + 1)
        return 0

    cdef int64_t limit_of(self, Py_ssize_t rank) noexcept nogil:
        """A squared norm that at least `rank` users stay below; the limit of all, if there are not so many."""
        cdef Py_ssize_t level, users = 0
        for level in range(MAGNITUDES):
            users += self.population[level]
            if users >= rank:
                return magnitude_end(level)
        return <int64_t> 1 << 62

    cdef int grow_older(self) except -1 nogil:
        """Count a change; after many of them, choose the crowd anew."""
        self.crowd.age += 1
        if self.crowd.age > 64 + (self.user_room + self.crowd.records) // 16:  # about what it costs, in entries
            self.choose_crowd()
        return 0

    cdef int choose_crowd(self) except -1 nogil:
        """Choose the users with the smallest norms as the crowd; of equal ones, those with the smallest codes."""
        cdef int64_t limit = self.limit_of(self.crowd.size)
        cdef Py_ssize_t user, room = 0, count = 0
        for user in range(self.user_room):
            room += 0 < self.norm[user] < limit
        cdef Candidate *candidates = <Candidate *> allocated(room, sizeof(Candidate))
        for user in range(self.user_room):
            if 0 < self.norm[user] < limit:
                candidates[count] = Candidate(self.norm[user], <uint32_t> user)
                count += 1
        count = min(self.crowd.size, count)
        smallest_first(candidates, room, count, NULL)
        self.crowd.dissolve()
        for user in range(count):
            self.crowd.enter(candidates[user].code)
            self.crowd.join(self.vector(candidates[user].code), self.vectors.length(candidates[user].code), 1)
        give_back(candidates, room * sizeof(Candidate))
        return self.crowd.sort()

    cdef int expect(self, const int64_t *having) except -1 nogil:
        """Reserve room for as many new entries of each item as `having` says: no row moves while they are added."""
        cdef Py_ssize_t item
        for item in range(self.item_room):
            if having[item]:
                self.postings.reserve(item, self.postings.length(item) + having[item])
        return 0

    def admit(self, Py_ssize_t users, Py_ssize_t items):
        """Make room for user codes below `users` and item codes below `items`."""
        self.make_room(users, items)

    def fill(self, const int64_t[::1] ends, const uint32_t[::1] items, const uint32_t[::1] weights):
        """Give vectors to new users, with codes from 0 on: entries one user after another, ending where `ends` say."""
        assert len(ends) <= self.user_room and len(items) == len(weights), "no such users, or items without weights"
        cdef int64_t *having = <int64_t *> allocated(self.item_room, sizeof(int64_t))
        cdef Py_ssize_t i
        try:
            with nogil:
                for i in range(items.shape[0]):
                    assert items[i] < self.item_room, "no such item"
                    having[items[i]] += 1
                self.expect(having)
                self._fill(ends, items, weights)
        finally:
            give_back(having, self.item_room * sizeof(int64_t))

    cdef int _fill(
        self, const int64_t[::1] ends, const uint32_t[::1] items, const uint32_t[::1] weights
    ) except -1 nogil:
        cdef Py_ssize_t user, i, first = 0
        cdef int64_t norm
        for user in range(ends.shape[0]):
            norm = 0
            self.vectors.reserve(user, ends[user] - first)
            for i in range(first, ends[user]):
                if weights[i] != 0:
                    self.add(<uint32_t> user, items[i], weights[i])
                    norm += <int64_t> weights[i] * weights[i]
            self.rank(user, norm)
            first = ends[user]
        return 0

    def gather_crowd(self):
        """Choose the crowd anew."""
        with nogil:
            self.choose_crowd()

    def vector_of(self, Py_ssize_t user):
        """A copy of a user's vector."""
        cdef Vector copy = Vector.of(self.vectors.length(user))
        cdef Entry *entries = self.vector(user)
        cdef Py_ssize_t i
        for i in range(self.vectors.length(user)):
            copy.add(entries[i].item, entries[i].weight)
        return copy
