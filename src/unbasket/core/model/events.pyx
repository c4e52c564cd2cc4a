"""Events applied to histories, one at a time or many new users at once.

Learning, editing, late arrival and every way of forgetting are the same operation: a change of the history, between
calls of the hooks `changing` and `changed`, by which a subclass keeps derived structures up to date. A forget returns
the orphaned items, in no basket any more, whose codes the caller frees.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport Rule
from unbasket.core.model.history cimport Basket, Histories, Insertion, Removal

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

LEARNED = -1  # results of `learn`
TIED = -2


@cython.final
cdef class Baskets:
    """Baskets as columns, user after user, each user's oldest first."""

    def __init__(
        self, const int64_t[::1] keys, const int64_t[::1] times, const int64_t[::1] sizes, const uint8_t[::1] opens
    ):
        assert len(keys) == len(times) == len(sizes) == len(opens), "equally long"
        self.keys, self.times, self.sizes, self.opens = keys, times, sizes, opens

    cdef int copy(self, Py_ssize_t first, Py_ssize_t count, Basket *records) noexcept nogil:
        """Copy some baskets into records."""
        cdef Py_ssize_t i
        for i in range(count):
            records[i] = Basket(
                self.keys[first + i], self.times[first + i], <uint32_t> self.sizes[first + i], self.opens[first + i]
            )


cdef class EventApplier:
    """Histories, the rule that groups their baskets, and buffers for the event that is being applied."""

    def __init__(self, Histories histories, Rule rule):
        self.histories = histories
        self.rule = rule
        self.items = JaggedArray(sizeof(uint32_t))
        self.items.add_rows(1)
        self.removed = JaggedArray(sizeof(Basket))
        self.removed.add_rows(1)

    def admit(self, Py_ssize_t users, Py_ssize_t items):
        """Make room for user codes below `users` and item codes below `items`."""
        self.histories.admit(users, items)

    cdef int changing(self, Py_ssize_t user) except -1 nogil:
        """Hook: a user's history is about to change."""

    cdef int changed(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        """Hook: a user's history has changed from this position on."""

    cdef int reserve(self, const Batch *batch) except -1:
        """Reserve memory for new users before any record is added. Subclasses reserve theirs as well."""
        cdef Py_ssize_t i, basket = 0, item = 0
        with nogil:
            for i in range(batch.count):
                self.histories.baskets.reserve(batch.users[i], batch.basket_ends[i] - basket)
                self.histories.items.reserve(batch.users[i], batch.item_ends[i] - item)
                basket, item = batch.basket_ends[i], batch.item_ends[i]

    cdef int loaded(self, const Batch *batch) except -1 nogil:
        """Hook: new users have their histories."""

    cdef uint32_t *_set_items(self, list codes) except NULL:
        cdef Py_ssize_t i, count = len(codes)
        self.items.clear_row(0)
        self.items.open_gap(0, 0, count)
        cdef uint32_t *items = <uint32_t *> self.items.first(0)
        for i in range(count):
            items[i] = codes[i]
        return items

    cdef int _note_items(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        """Append items of the user's history, which are about to be removed, to the buffer."""
        cdef uint32_t *items = <uint32_t *> self.histories.items.first(user) + first
        memcpy(self.items.open_gap(0, self.items.length(0), count), items, count * sizeof(uint32_t))

    cdef Py_ssize_t _note_basket(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        """Append the items of the basket at a position to the buffer; return their number."""
        cdef Py_ssize_t first = self.histories.offset(user, position)
        cdef Py_ssize_t size = (<Basket *> self.histories.baskets.first(user))[position].size
        self._note_items(user, first, size)
        return size

    cdef list _take_orphaned_items(self):
        """Clear the buffer of items; return those in no basket (some more than once)."""
        cdef uint32_t *items = <uint32_t *> self.items.first(0)
        cdef Py_ssize_t i
        orphaned = [items[i] for i in range(self.items.length(0)) if self.histories.popularity[items[i]] == 0]
        self.items.clear_row(0)
        return orphaned

    cdef list _take_removed(self):
        """Clear the buffer of removed baskets; return their keys."""
        cdef Basket *baskets = <Basket *> self.removed.first(0)
        cdef Py_ssize_t i
        removed = [baskets[i].key for i in range(self.removed.length(0))]
        self.removed.clear_row(0)
        return removed

    def learn(self, Py_ssize_t user, int64_t key, int64_t time, list items, bint search):
        """Insert a basket at the position of its time.

        Nothing changes if the user has a basket of this id (which is looked up only if `search`), or if the ids of
        baskets of the same time must decide. Returns the position of the basket with this id (LEARNED: there was none,
        TIED: use `learn_at`), the position of the new basket, and the count of baskets before.
        """
        cdef Insertion insertion
        cdef Py_ssize_t found = self.histories.position_of(user, key) if search else -1
        cdef Py_ssize_t count = self.histories.baskets.length(user)
        self.histories.find_insertion(user, time, &insertion)
        if found < 0 and not insertion.tied:
            self._insert(user, insertion.position, Basket(key, time, <uint32_t> len(items), False), items)
        if found >= 0:
            return found, insertion.position, count
        return TIED if insertion.tied else LEARNED, insertion.position, count

    def learn_at(self, Py_ssize_t user, Py_ssize_t position, int64_t key, int64_t time, list items):
        """Insert a basket at a position."""
        self._insert(user, position, Basket(key, time, <uint32_t> len(items), False), items)

    def learn_all(
        self, const int64_t[::1] users, const int64_t[::1] keys, const int64_t[::1] times, const int64_t[::1] sizes,
        const uint32_t[::1] items, Py_ssize_t longest
    ):
        """Insert baskets at the positions of their times; return how many were inserted.

        The first one that needs `learn` ends this: its user has a basket of this id or of this time, or `longest` ones.
        Derived structures follow once for adjacent baskets of a user.
        """
        assert len(users) == len(keys) == len(times) == len(sizes), "equally long"
        cdef Py_ssize_t i = 0, item = 0, user, oldest
        cdef Basket basket
        with nogil:
            while i < users.shape[0]:
                user, oldest = users[i], PY_SSIZE_T_MAX
                while i < users.shape[0] and users[i] == user:
                    basket = Basket(keys[i], times[i], <uint32_t> sizes[i], False)
                    if not self._insert_new(user, basket, &items[item], longest, &oldest):
                        break
                    item += sizes[i]
                    i += 1
                if oldest < PY_SSIZE_T_MAX:
                    self.changed(user, oldest)
                if i < users.shape[0] and users[i] == user:
                    break
        return i

    cdef bint _insert_new(
        self, Py_ssize_t user, Basket basket, const uint32_t *items, Py_ssize_t longest, Py_ssize_t *oldest
    ) except -1 nogil:
        """Insert a basket whose position needs no ids; return whether that is so.

        `oldest` is the least position of those inserted before, for the first of which the history was `changing`.
        """
        cdef Py_ssize_t group_size = self.rule.group_size if self.rule.varying else 0
        cdef Insertion insertion
        self.histories.find_insertion(user, basket.time, &insertion)
        if insertion.tied or self.histories.baskets.length(user) >= longest:
            return False
        if self.histories.position_of(user, basket.key) >= 0:
            return False
        if oldest[0] == PY_SSIZE_T_MAX:
            self.changing(user)
        self.histories.insert(user, insertion.position, &basket, items, group_size)
        oldest[0] = min(oldest[0], insertion.position)
        return True

    cdef int _insert(self, Py_ssize_t user, Py_ssize_t position, Basket basket, list items) except -1:
        cdef Py_ssize_t group_size = self.rule.group_size if self.rule.varying else 0
        cdef const uint32_t *codes = self._set_items(items)
        try:
            with nogil:
                self.changing(user)
                self.histories.insert(user, position, &basket, codes, group_size)
                self.changed(user, position)
        finally:
            self.items.clear_row(0)

    def comes_last(self, Py_ssize_t user, int64_t key, int64_t time, bint search):
        """Return whether `learn` would insert a basket behind all others, and ids need not decide."""
        cdef Insertion insertion
        if search and self.histories.position_of(user, key) >= 0:
            return False
        self.histories.find_insertion(user, time, &insertion)
        return insertion.position == self.histories.baskets.length(user) and not insertion.tied

    def edit(self, Py_ssize_t user, Py_ssize_t position, list items):
        """Replace the items of the basket at a position; return the orphaned items."""
        cdef Py_ssize_t count = len(items)
        self._set_items(items)
        with nogil:
            self._note_basket(user, position)
            self.changing(user)
            self.histories.replace(user, position, <uint32_t *> self.items.first(0), count)
            self.changed(user, position)
        return self._take_orphaned_items()

    def forget_basket(self, Py_ssize_t user, int64_t key):
        """Remove the basket with an id.

        Returns the number of its items (0: there is no such basket), of baskets left, and the orphaned items.
        """
        cdef Py_ssize_t position = self.histories.position_of(user, key), size = 0
        if position >= 0:
            with nogil:
                size = self._note_basket(user, position)
                self.changing(user)
                self.histories.remove(user, position)
                self.changed(user, position)
        return size, self.histories.baskets.length(user), self._take_orphaned_items()

    def forget_item(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t end, uint32_t item):
        """Remove an item from the baskets at positions `first` to `end`.

        Returns the number of baskets that held it, of baskets left, the keys of baskets removed as empty, and
        the item itself if it is orphaned.
        """
        cdef Removal removal = Removal(item, first, end, 0, 0)
        with nogil:
            if self.histories.has_item(user, &removal):
                self.changing(user)
                self.histories.remove_item(user, &removal, self.removed)
                self.changed(user, removal.oldest)
        orphaned = [item] if self.histories.popularity[item] == 0 else []
        return removal.removed, self.histories.baskets.length(user), self._take_removed(), orphaned

    def forget_user(self, Py_ssize_t user):
        """Remove all baskets of a user.

        Returns the number of purchases in them, their keys, and the orphaned items (some more than once).
        """
        cdef Py_ssize_t count = self.histories.baskets.length(user), size = self.histories.items.length(user)
        with nogil:
            self._note_items(user, 0, size)
            memcpy(self.removed.open_gap(0, 0, count), self.histories.baskets.first(user), count * sizeof(Basket))
            self.changing(user)
            self.histories.clear(user)
            self.changed(user, 0)
        return size, self._take_removed(), self._take_orphaned_items()

    def load(
        self, Baskets baskets, const int64_t[::1] users, const int64_t[::1] basket_ends,
        const int64_t[::1] item_ends, const uint32_t[::1] items, const uint32_t[::1] purchases
    ):
        """Load the histories of at least one new user: records in order, user after user, up to the `_ends`.

        Purchases are positions in `items`.
        """
        assert len(users) == len(basket_ends) == len(item_ends), "equally long"
        cdef Batch batch = Batch(len(users), &users[0], &basket_ends[0], &item_ends[0], &items[0], &purchases[0])
        cdef Py_ssize_t i, items_most = 0, baskets_most = 0
        for i in range(batch.count):
            items_most = max(items_most, item_ends[i] - (item_ends[i - 1] if i else 0))
            baskets_most = max(baskets_most, basket_ends[i] - (basket_ends[i - 1] if i else 0))
        cdef uint32_t *codes = NULL
        cdef Basket *records = NULL
        try:
            codes = <uint32_t *> allocated(items_most, sizeof(uint32_t))
            records = <Basket *> allocated(baskets_most, sizeof(Basket))
            self.reserve(&batch)
            with nogil:
                self._load(baskets, &batch, codes, records)
                self.loaded(&batch)
        finally:
            give_back(codes, items_most * sizeof(uint32_t))
            give_back(records, baskets_most * sizeof(Basket))

    cdef int _load(self, Baskets baskets, const Batch *batch, uint32_t *codes, Basket *records) except -1 nogil:
        """Load histories; `codes` and `records` have room for the items and the baskets of any of them."""
        cdef Py_ssize_t i, j, basket = 0, item = 0, count, size
        for i in range(batch.count):
            count, size = batch.basket_ends[i] - basket, batch.item_ends[i] - item
            for j in range(size):
                codes[j] = batch.items[batch.purchases[item + j]]
            baskets.copy(basket, count, records)
            self.histories.load(batch.users[i], records, count, codes, size)
            basket, item = batch.basket_ends[i], batch.item_ends[i]
