"""One event, all the way: change the history, rewind the fold, replay it, put the vector into the index.

Learning, editing, late arrival and every way of forgetting are the same operation: a change of the history, and
`refresh`, which drops the checkpoints behind it and brings the vector up to date. What is forgotten is answered with the
items that nobody has any more, whose codes the caller frees.

If there is a pool, only the vectors of those who are in it are in the index; a change of who is there may let one enter
or leave.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from unbasket.core.model.fold cimport Rule, fold
from unbasket.core.model.history cimport Basket, Histories, Removal, Slot
from unbasket.core.index.index cimport Index
from unbasket.core.model.checkpoints cimport Checkpoints
from unbasket.core.index.pool cimport Pool
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.workspace cimport FoldWorkspace

LEARNED = -1  # answers of `learn`
TIED = -2


@cython.final
cdef class Live:
    """All that an event goes through; the writer's work space; and the items and baskets that an event is about."""

    def __cinit__(self, Histories histories, Index index, Rule rule, Pool pool=None):
        self.histories = histories
        self.checkpoints = Checkpoints()
        self.index = index
        self.space = FoldWorkspace()
        self.rule = rule
        self.pool = pool
        self.items = JaggedArray(sizeof(uint32_t))
        self.items.add_rows(1)
        self.gone = JaggedArray(sizeof(Basket))
        self.gone.add_rows(1)

    def admit(self, Py_ssize_t users, Py_ssize_t items):
        """Make room for user codes below `users` and item codes below `items`."""
        self.histories.admit(users, items)
        self.checkpoints.admit(users)
        self.index.make_room(users, items)
        if self.pool is not None:
            self.pool.admit(users)

    cdef bint in_pool(self, Py_ssize_t user) except -1 nogil:
        """Whether a user's vector belongs into the index: without a pool, everybody's does."""
        return self.pool is None or self.pool.holds(user)

    def join(self, Py_ssize_t user, uint64_t lot):
        """Give a new user a lot, with which they may get into the pool; whoever leaves it for them leaves the index."""
        assert self.pool is not None, "no pool"
        cdef Py_ssize_t leaver = self.pool.add(<uint32_t> user, lot)
        if leaver >= 0:
            self.space.widen(self.histories.item_room)
            self.index.put(leaver, self.space, self.rule.group_decay)

    def leave(self, Py_ssize_t user):
        """Take the lot of a user who has no baskets left; whoever enters the pool in their place enters the index."""
        assert self.pool is not None, "no pool"
        cdef Py_ssize_t entrant = self.pool.remove(<uint32_t> user)
        if entrant >= 0:
            with nogil:
                self.replay(entrant)
                self.index.tend_hubs()

    def derive(self, Py_ssize_t user):
        """Derive a user's checkpoints and vector from the history, which others have changed."""
        with nogil:
            self.refresh(user, 0)

    def withdraw(self, Py_ssize_t user):
        """Take a user out of the checkpoints, the index and the line for the pool, whatever the history says."""
        self.checkpoints.drop_from(user, 0)
        self.space.widen(self.histories.item_room)
        self.index.put(user, self.space, self.rule.group_decay)
        self.leave(user)

    cdef int replay(self, Py_ssize_t user) except -1 nogil:
        """Fold a history from its newest checkpoint on, into new checkpoints and, if the user is in the pool, into the index."""
        cdef bint in_pool = self.in_pool(user)
        if not in_pool and self.histories.baskets.length(user) <= self.rule.stride:
            return 0  # too short for checkpoints
        fold(self.histories, self.checkpoints, user, self.rule, self.space)
        if in_pool:
            self.index.put(user, self.space, self.rule.group_decay)
        return self.space.clean()

    cdef int refresh(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        """Bring a user's vector up to date with the history, after a change at this position."""
        self.checkpoints.drop_from(user, position)
        self.replay(user)
        return self.index.tend_hubs() if self.in_pool(user) else 0

    cdef uint32_t *put(self, list codes) except NULL:
        """The items of an event, as an array."""
        cdef Py_ssize_t i, count = len(codes)
        self.items.clear_row(0)
        self.items.open_gap(0, 0, count)
        cdef uint32_t *items = <uint32_t *> self.items.first(0)
        for i in range(count):
            items[i] = codes[i]
        return items

    cdef int note_items(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t count) except -1 nogil:
        """Keep the items of the baskets that are about to go."""
        memcpy(
            self.items.open_gap(0, self.items.length(0), count),
            <uint32_t *> self.histories.items.first(user) + first,
            count * sizeof(uint32_t),
        )
        return 0

    cdef list _vanished(self):
        """The items of this event that nobody has any more (some more than once)."""
        cdef uint32_t *items = <uint32_t *> self.items.first(0)
        cdef Py_ssize_t i
        vanished = [items[i] for i in range(self.items.length(0)) if self.histories.popularity[items[i]] == 0]
        self.items.clear_row(0)
        return vanished

    cdef list _take_gone(self):
        """The ids of the baskets that are gone with this event."""
        cdef Basket *baskets = <Basket *> self.gone.first(0)
        cdef Py_ssize_t i
        gone = [(baskets[i].key, bool(baskets[i].is_text)) for i in range(self.gone.length(0))]
        self.gone.clear_row(0)
        return gone

    def learn(self, Py_ssize_t user, int64_t key, bint is_text, int64_t time, list items, bint search):
        """Insert a basket where its time says, and bring the vector up to date.

        Nothing happens if there is a basket of this id (which is looked for only if `search`), or if ids must decide
        between it and others of the same time. Returns where the one of this id is (LEARNED: there was none, TIED: see
        `learn_at`), the position of the new one, and the count before.
        """
        cdef Basket basket = Basket(key, time, <uint32_t> len(items), is_text, False)
        cdef Slot slot
        cdef Py_ssize_t found = -1, count = self.histories.baskets.length(user)
        self.put(items)
        try:
            with nogil:
                if search:
                    found = self.histories.position_of(user, key, is_text)
                self.histories.find_slot(user, time, &slot)
                if found < 0 and not slot.tied:
                    self._insert(user, slot.position, &basket)
        finally:
            self.items.clear_row(0)
        if found >= 0:
            return found, slot.position, count
        return TIED if slot.tied else LEARNED, slot.position, count

    def learn_at(self, Py_ssize_t user, Py_ssize_t position, int64_t key, bint is_text, int64_t time, list items):
        """Insert a basket at a position, and bring the vector up to date."""
        cdef Basket basket = Basket(key, time, <uint32_t> len(items), is_text, False)
        self.put(items)
        try:
            with nogil:
                self._insert(user, position, &basket)
        finally:
            self.items.clear_row(0)

    cdef int _insert(self, Py_ssize_t user, Py_ssize_t position, const Basket *basket) except -1 nogil:
        cdef Py_ssize_t group_size = self.rule.group_size if self.rule.varying else 0
        self.histories.insert(user, position, basket, <uint32_t *> self.items.first(0), group_size)
        return self.refresh(user, position)

    def comes_last(self, Py_ssize_t user, int64_t key, bint is_text, int64_t time, bint search):
        """Whether `learn` would insert a basket behind all others, and ids need not decide."""
        cdef Slot slot
        if search and self.histories.position_of(user, key, is_text) >= 0:
            return False
        self.histories.find_slot(user, time, &slot)
        return slot.position == self.histories.baskets.length(user) and not slot.tied

    def edit(self, Py_ssize_t user, Py_ssize_t position, list items):
        """Give the basket at a position other items; returns the items that vanished."""
        self.put(items)
        with nogil:
            self._edit(user, position)
        return self._vanished()

    cdef int _edit(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        cdef Py_ssize_t count = self.items.length(0), first = self.histories.offset(user, position)
        self.note_items(user, first, (<Basket *> self.histories.baskets.first(user))[position].size)
        self.histories.replace(user, position, <uint32_t *> self.items.first(0), count)
        return self.refresh(user, position)

    def forget_basket(self, Py_ssize_t user, int64_t key, bint is_text):
        """Remove the basket of an id.

        Returns how many items it held (0: it is not there), how many baskets are left, and the items that vanished.
        """
        cdef Py_ssize_t position = self.histories.position_of(user, key, is_text), size = 0
        if position >= 0:
            with nogil:
                size = self._forget_basket(user, position)
        return size, self.histories.baskets.length(user), self._vanished()

    cdef Py_ssize_t _forget_basket(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        cdef Py_ssize_t size = (<Basket *> self.histories.baskets.first(user))[position].size
        self.note_items(user, self.histories.offset(user, position), size)
        self.histories.remove(user, position)
        self.refresh(user, position)
        return size

    def forget_item(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t end, uint32_t item):
        """Remove an item from the baskets at positions `first` to `end`.

        Returns how many held it, how many baskets are left, the ids (key, whether it is a text's) of those that it was
        the last item of, and the item itself if it vanished.
        """
        cdef Removal removal = Removal(item, first, end, 0, 0)
        with nogil:
            self.histories.remove_item(user, &removal, self.gone)
            if removal.removed > 0:
                self.refresh(user, removal.oldest)
        vanished = [item] if self.histories.popularity[item] == 0 else []
        return removal.removed, self.histories.baskets.length(user), self._take_gone(), vanished

    def forget_user(self, Py_ssize_t user):
        """Remove all baskets of a user.

        Returns how many purchases they held, their ids as in `forget_item`, and the items that vanished (some more than
        once).
        """
        cdef Py_ssize_t size = self.histories.items.length(user)
        with nogil:
            self._forget_user(user)
        return size, self._take_gone(), self._vanished()

    cdef int _forget_user(self, Py_ssize_t user) except -1 nogil:
        cdef Py_ssize_t count = self.histories.baskets.length(user)
        self.note_items(user, 0, self.histories.items.length(user))
        memcpy(self.gone.open_gap(0, 0, count), self.histories.baskets.first(user), count * sizeof(Basket))
        self.histories.clear(user)
        return self.refresh(user, 0)
