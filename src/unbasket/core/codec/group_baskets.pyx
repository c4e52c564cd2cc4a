"""Purchases, one per row in any order, grouped into histories: by user, oldest basket first, items distinct."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport qsort

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back


cdef struct Sortable:
    int64_t key
    uint32_t row  # breaks ties


cdef int compare(const void *one, const void *other) noexcept nogil:
    cdef const Sortable *a = <const Sortable *> one
    cdef const Sortable *b = <const Sortable *> other
    if a.key != b.key:
        return -1 if a.key < b.key else 1
    return -1 if a.row < b.row else 1


cdef void sort(Sortable *rows, Py_ssize_t count) noexcept nogil:
    """Sort by key and row, rows of equal keys being sorted already. Most data are sorted by key as well."""
    cdef Py_ssize_t i
    for i in range(1, count):
        if rows[i].key < rows[i - 1].key:
            qsort(rows, count, sizeof(Sortable), compare)
            return


def rows_by_user(const uint32_t[::1] user, Py_ssize_t users, uint32_t[::1] rows):
    """Sort row numbers by user into `rows`, by a stable counting sort; return where the rows of each user end."""
    ends = np.zeros(users, np.int64)
    cdef int64_t[::1] end = ends
    cdef Py_ssize_t i
    cdef int64_t count, total = 0
    assert len(user) == len(rows), "equally long"
    with nogil:
        for i in range(user.shape[0]):
            end[user[i]] += 1
        for i in range(users):
            count = end[i]
            end[i] = total
            total += count
        for i in range(user.shape[0]):
            rows[end[user[i]]] = <uint32_t> i
            end[user[i]] += 1
    return ends


cdef class _BasketGrouper:
    """The state of `arrange`."""

    cdef const uint32_t[::1] basket, item  # codes of each row
    cdef const uint32_t[::1] time  # of each row, in order; empty without times
    cdef uint32_t[::1] owners  # of each basket
    cdef int64_t[::1] first_rows, sizes  # of each basket
    cdef uint32_t[::1] purchases  # items of all baskets, one after the other
    cdef Sortable *mine  # the rows of one user, by basket
    cdef Sortable *starts  # the user's baskets by time: where each starts in `mine`
    cdef int64_t *newest  # by item: the last basket that has it, from 1 on
    cdef Py_ssize_t baskets, count  # baskets and purchases so far
    cdef Py_ssize_t capacity, items  # of `mine` and `starts`; of `newest`
    cdef int64_t conflict  # a row whose time differs from its basket's, or -1

    def __cinit__(self, Py_ssize_t capacity, Py_ssize_t items):
        self.capacity, self.items, self.conflict = capacity, items, -1
        self.mine = <Sortable *> allocated(capacity, sizeof(Sortable))
        self.starts = <Sortable *> allocated(capacity, sizeof(Sortable))
        self.newest = <int64_t *> allocated(items, sizeof(int64_t))

    def __dealloc__(self):
        give_back(self.mine, self.capacity * sizeof(Sortable))
        give_back(self.starts, self.capacity * sizeof(Sortable))
        give_back(self.newest, self.items * sizeof(int64_t))

    cdef int add_user(self, Py_ssize_t user, const uint32_t *rows, Py_ssize_t count) noexcept nogil:
        """Add the baskets of one user, given the user's rows."""
        cdef Py_ssize_t i, baskets = 0
        for i in range(count):
            self.mine[i] = Sortable(self.basket[rows[i]], rows[i])
        sort(self.mine, count)
        for i in range(count):
            if i == 0 or self.mine[i].key != self.mine[i - 1].key:
                # Without times, the first row of a basket takes the place of its time.
                self.starts[baskets].key = self.mine[i].row
                if self.time.shape[0]:
                    self.starts[baskets].key = self.time[self.mine[i].row]
                self.starts[baskets].row = <uint32_t> i
                baskets += 1
            elif self.time.shape[0] and self.time[self.mine[i].row] != self.time[self.mine[i - 1].row]:
                self.conflict = max(self.conflict, <int64_t> self.mine[i].row)
        sort(self.starts, baskets)
        for i in range(baskets):
            self.owners[self.baskets] = <uint32_t> user
            self.add_basket(self.starts[i].row, count)

    cdef int add_basket(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Add the basket whose rows begin at `start`, with each of its items once."""
        cdef Py_ssize_t before = self.count, i = start
        cdef uint32_t item
        self.first_rows[self.baskets] = self.mine[start].row
        self.baskets += 1
        while i < end and self.mine[i].key == self.mine[start].key:
            item = self.item[self.mine[i].row]
            if self.newest[item] != self.baskets:
                self.newest[item] = self.baskets
                self.purchases[self.count] = item
                self.count += 1
            i += 1
        self.sizes[self.baskets - 1] = self.count - before


def arrange(rows, row_ends, basket, item, time, Py_ssize_t items):
    """Group rows, sorted by `rows_by_user`, into baskets, by (time, basket), or by first row without times.

    Return the user, the first row and the size of each basket, the items of all baskets, one after the other, and a row
    whose time differs from its basket's, or -1. The items overwrite `rows`, which has room for them: a user's items are
    at most as many as the user's rows, which have been read by then. With 260 million purchases that saves a gigabyte.
    """
    cdef uint32_t[::1] row = rows
    cdef const int64_t[::1] ends = row_ends
    cdef Py_ssize_t user, begin = 0
    # NumPy uses huge pages for these, if there are any.
    first_rows, sizes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    owners = np.empty(len(rows), np.uint32)
    cdef _BasketGrouper work = _BasketGrouper(int(np.diff(row_ends, prepend=0).max(initial=0)), items)
    work.basket, work.item, work.time = basket, item, time
    work.owners, work.first_rows, work.sizes, work.purchases = owners, first_rows, sizes, row
    with nogil:
        for user in range(ends.shape[0]):
            if ends[user] > begin:
                work.add_user(user, &row[begin], ends[user] - begin)
            begin = ends[user]
    of_baskets = (column[: work.baskets] for column in (owners, first_rows, sizes))
    return *of_baskets, rows[: work.count], work.conflict


def tick(const int64_t[::1] values, int64_t low, uint32_t[::1] table):
    """Set `table[value - low]` to 1 for each value."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            table[values[i] - low] = 1


def encode(const int64_t[::1] values, int64_t low, const uint32_t[::1] table, uint32_t[::1] codes):
    """Look up the code of each value in `table`."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            codes[i] = table[values[i] - low]
