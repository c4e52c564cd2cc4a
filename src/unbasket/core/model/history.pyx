"""The baskets of every user, oldest first: all data that the model is trained on.

Users and items are dense codes. The items of a history stand in a second row, basket after basket.

`Histories` can record its changes as splices, so that data kept in the same order as the baskets can follow: each
`Splice` replaces some records at a position by new ones. An edited record counts as one removed and one inserted.

All work starts from the end of a history, so a change at position p costs O(|H| - p).
"""

cimport cython
from libc.stdint cimport INT64_MIN, int64_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.memory.jagged cimport JaggedArray

UNTIMED = INT64_MIN


@cython.final
cdef class Histories:
    """A row of baskets and a row of items per user, and for each item the number of baskets that hold it."""

    def __cinit__(self):
        self.baskets = JaggedArray(sizeof(Basket))
        self.items = JaggedArray(sizeof(uint32_t))
        self.splices = JaggedArray(sizeof(Splice))
        self.splices.add_rows(1)

    def __dealloc__(self):
        give_back(self.popularity, self.item_room * sizeof(int64_t))

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
        """Make room for user codes below `users` and item codes below `items`."""
        self.baskets.add_rows(users)
        self.items.add_rows(users)
        if items > self.item_room:
            self.popularity = <int64_t *> grown(self.popularity, self.item_room, items, sizeof(int64_t))
            self.item_room = items

    cdef int of(self, Py_ssize_t user, History *history) except -1 nogil:
        """Fill in a user's history. Valid until a record is added to any history."""
        history.baskets = <Basket *> self.baskets.first(user)
        history.length = self.baskets.length(user)
        history.items = <uint32_t *> self.items.first(user)

    cpdef Py_ssize_t position_of(self, Py_ssize_t user, int64_t key) except -2 nogil:
        """Return the position of the basket with this key, or -1."""
        cdef Basket *baskets = <Basket *> self.baskets.first(user)
        cdef Py_ssize_t i
        for i in range(self.baskets.length(user) - 1, -1, -1):
            if baskets[i].key == key:
                return i
        return -1

    cdef int find_insertion(self, Py_ssize_t user, int64_t time, Insertion *found) except -1 nogil:
        """Find the last position where a basket of this time may be inserted.

        Timed baskets are in order of (time, id); a basket without a time stays behind the one it arrived after. Only
        the caller knows the ids, so a basket of the same time before the position makes it `tied`.
        """
        cdef Basket *baskets = <Basket *> self.baskets.first(user)
        cdef Py_ssize_t i
        found.position, found.tied = self.baskets.length(user), False
        if time == INT64_MIN:
            return 0
        for i in range(found.position - 1, -1, -1):
            if baskets[i].time == INT64_MIN:
                continue
            if baskets[i].time <= time:
                found.tied = baskets[i].time == time
                return 0
            found.position = i

    cdef Py_ssize_t offset(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        """Count the items in the baskets before `position`."""
        assert 0 <= position <= self.baskets.length(user), "no such position"
        cdef Basket *baskets = <Basket *> self.baskets.first(user)
        cdef Py_ssize_t items = self.items.length(user), i
        for i in range(position, self.baskets.length(user)):
            items -= baskets[i].size
        return items

    cdef int insert(
        self, Py_ssize_t user, Py_ssize_t position, const Basket *new, const uint32_t *items, Py_ssize_t group_size
    ) except -1 nogil:
        """Insert a basket. `group_size` is m under varying groups, and 0 under fixed groups, which need no flag."""
        cdef Basket basket = new[0]
        basket.opens_group = group_size > 0 and self._group_is_full(user, position, group_size)
        self._add_items(user, self.offset(user, position), items, basket.size)
        (<Basket *> self.baskets.open_gap(user, position, 1))[0] = basket
        return self._note(user, position, 0, 1)

    cdef int _note(self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t removed, Py_ssize_t inserted) except -1 nogil:
        if self.notes_changes:
            (<Splice *> self.splices.append(0))[0] = Splice(user, position, removed, inserted)

    cdef bint _group_is_full(self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t group_size) except -1 nogil:
        """Return whether the group of the basket before `position` is full, or there is no such basket.

        One rule covers all insertions under varying groups: join that group while it has fewer than m baskets, else
        open a new one. At the end of a history this is the paper's rule; a late basket inside a full group splits it.
        """
        if position == 0:
            return True
        cdef Basket *baskets = <Basket *> self.baskets.first(user)
        cdef Py_ssize_t first = position - 1, end = position
        while not baskets[first].opens_group:
            first -= 1
            assert first >= 0, "the first basket opens no group"
        while end < self.baskets.length(user) and not baskets[end].opens_group:
            end += 1
        return end - first >= group_size

    cdef int remove(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        """Remove a basket. If it opened a group with further baskets, the next one opens it now."""
        assert 0 <= position < self.baskets.length(user), "no such basket"
        cdef Basket *basket = <Basket *> self.baskets.first(user) + position
        cdef bint opens = False  # the next basket changes too
        if basket.opens_group and position + 1 < self.baskets.length(user):
            opens = not basket[1].opens_group
            basket[1].opens_group = True
        self._drop_items(user, self.offset(user, position), basket.size)
        self.baskets.close_gap(user, position, 1)
        return self._note(user, position, 1 + opens, opens)

    cdef int replace(
        self, Py_ssize_t user, Py_ssize_t position, const uint32_t *items, Py_ssize_t size
    ) except -1 nogil:
        """Replace the items of a basket; its position and its group stay."""
        assert 0 <= position < self.baskets.length(user), "no such basket"
        cdef Basket *basket = <Basket *> self.baskets.first(user) + position
        cdef Py_ssize_t first = self.offset(user, position)
        self._add_items(user, first + basket.size, items, size)
        self._drop_items(user, first, basket.size)
        basket.size = size
        return self._note(user, position, 1, 1)

    cdef bint has_item(self, Py_ssize_t user, const Removal *removal) except -1 nogil:
        """Return whether `remove_item` would remove something."""
        cdef uint32_t *items = <uint32_t *> self.items.first(user)
        cdef Py_ssize_t i
        for i in range(self.offset(user, removal.first), self.offset(user, removal.end)):
            if items[i] == removal.item:
                return True
        return False

    cdef int remove_item(self, Py_ssize_t user, Removal *removal, JaggedArray removed) except -1 nogil:
        """Remove an item from the baskets at positions `first` to `end`, in one pass over all from `first` on.

        Baskets that become empty are removed too, and their records are appended to `removed`.
        """
        cdef Basket *baskets = <Basket *> self.baskets.first(user)
        cdef Basket *basket
        cdef uint32_t *items = <uint32_t *> self.items.first(user)
        cdef Py_ssize_t source = self.offset(user, removal.first)
        cdef Py_ssize_t target = source, emptied = 0, position, i, before
        cdef bint opens = False  # the next basket opens the group that a removed one opened
        cdef Splice run = Splice(user, 0, 0, 0)  # changed baskets in a row
        cdef bint changed
        removal.removed, removal.oldest = 0, removal.end
        for position in range(removal.first, self.baskets.length(user)):
            basket = baskets + position
            before = target
            for i in range(source, source + basket.size):
                if items[i] != removal.item or position >= removal.end:
                    items[target] = items[i]
                    target += 1
            source += basket.size
            changed = target - before < basket.size
            if changed:
                removal.removed += 1
                removal.oldest = min(removal.oldest, position)
            if target == before:
                (<Basket *> removed.append(0))[0] = basket[0]
                opens |= basket.opens_group
                emptied += 1
            else:
                changed |= opens and not basket.opens_group
                basket.opens_group |= opens
                opens = False
                basket.size = target - before
                baskets[position - emptied] = basket[0]
            if changed:
                run.removed += 1
                run.inserted += target > before
            elif run.removed:
                self._note(user, position - emptied - run.inserted, run.removed, run.inserted)
                run.removed = run.inserted = 0
        if run.removed:
            self._note(user, self.baskets.length(user) - emptied - run.inserted, run.removed, run.inserted)
        self.popularity[removal.item] -= removal.removed
        self.items.close_gap(user, self.items.length(user) - removal.removed, removal.removed)
        return self.baskets.close_gap(user, self.baskets.length(user) - emptied, emptied)

    cdef int _add_items(
        self, Py_ssize_t user, Py_ssize_t first, const uint32_t *items, Py_ssize_t count
    ) except -1 nogil:
        cdef Py_ssize_t i
        memcpy(self.items.open_gap(user, first, count), items, count * sizeof(uint32_t))
        for i in range(count):
            assert items[i] < self.item_room, "no such item"
            self.popularity[items[i]] += 1

    cdef int _drop_items(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        cdef uint32_t *items = <uint32_t *> self.items.first(user) + first
        cdef Py_ssize_t i
        for i in range(count):
            self.popularity[items[i]] -= 1
        return self.items.close_gap(user, first, count)

    cdef int load(
        self, Py_ssize_t user, const Basket *baskets, Py_ssize_t count, const uint32_t *items, Py_ssize_t size
    ) except -1 nogil:
        """Fill the empty history of a user with records that are in order."""
        memcpy(self.baskets.open_gap(user, 0, count), baskets, count * sizeof(Basket))
        return self._add_items(user, 0, items, size)

    cdef int clear(self, Py_ssize_t user) except -1 nogil:
        self._drop_items(user, 0, self.items.length(user))
        self._note(user, 0, self.baskets.length(user), 0)
        return self.baskets.clear_row(user)

    def count(self, Py_ssize_t user):
        return self.baskets.length(user)

    def sizes(self):
        """Count the baskets and the purchases of all users."""
        cdef Py_ssize_t user, baskets = 0, purchases = 0
        for user in range(self.baskets.count):
            baskets += self.baskets.length(user)
            purchases += self.items.length(user)
        return baskets, purchases

    def keys(self, Py_ssize_t user):
        """Return the keys of a user's baskets."""
        cdef Basket *baskets = <Basket *> self.baskets.first(user)
        cdef Py_ssize_t i
        return [baskets[i].key for i in range(self.baskets.length(user))]

    def read(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t end):
        """Return a user's baskets at positions `first` to `end`: key, time, items, opens_group."""
        assert 0 <= first <= end <= self.baskets.length(user), "no such baskets"
        cdef History history
        cdef Basket *basket
        cdef Py_ssize_t offset = self.offset(user, first), position, i
        cdef list records = []
        self.of(user, &history)
        for position in range(first, end):
            basket = history.baskets + position
            items = [history.items[i] for i in range(offset, offset + basket.size)]
            records.append((basket.key, basket.time, items, bool(basket.opens_group)))
            offset += basket.size
        return records

    def columns(self, const int64_t[::1] users):
        """Return the baskets of users as columns: keys, times, sizes, opens_group, baskets by user, and all items."""
        cdef History history
        cdef Py_ssize_t row, i, basket = 0, item = 0, baskets = 0, purchases = 0
        for row in range(len(users)):
            baskets += self.baskets.length(users[row])
            purchases += self.items.length(users[row])
        columns = [np.empty(baskets, np.int64) for _ in range(4)]
        counts, items = np.empty(len(users), np.int64), np.empty(purchases, np.uint32)
        cdef int64_t[::1] key = columns[0], time = columns[1], size = columns[2], opens = columns[3], count = counts
        cdef uint32_t[::1] code = items
        for row in range(len(users)):
            self.of(users[row], &history)
            count[row] = history.length
            for i in range(history.length):
                key[basket], time[basket] = history.baskets[i].key, history.baskets[i].time
                size[basket], opens[basket] = history.baskets[i].size, history.baskets[i].opens_group
                basket += 1
            for i in range(self.items.length(users[row])):
                code[item] = history.items[i]
                item += 1
        return *columns, counts, items

    def take_changes(self):
        """Return and clear the splices: user, position, records removed, records inserted. Apply them in order."""
        cdef Splice *splices = <Splice *> self.splices.first(0)
        cdef Py_ssize_t i
        changes = [
            (splices[i].user, splices[i].position, splices[i].removed, splices[i].inserted)
            for i in range(self.splices.length(0))
        ]
        self.splices.clear_row(0)
        return changes
