"""From rows of purchases in any order to histories: grouped by user, baskets oldest first, items distinct."""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport qsort

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back


cdef struct Sortable:
    int64_t key
    uint32_t row


cdef int in_order(const void *one, const void *other) noexcept nogil:
    cdef const Sortable *a = <const Sortable *> one
    cdef const Sortable *b = <const Sortable *> other
    if a.key != b.key:
        return -1 if a.key < b.key else 1
    return -1 if a.row < b.row else 1


cdef void sort(Sortable *rows, Py_ssize_t count) noexcept nogil:
    """Sort by key and row; order data often come sorted already."""
    cdef Py_ssize_t i
    for i in range(1, count):
        if rows[i].key < rows[i - 1].key:
            qsort(rows, count, sizeof(Sortable), in_order)
            return


def rows_by_user(const uint32_t[::1] user, Py_ssize_t users, uint32_t[::1] rows):
    """Fill in the rows of each user, in the order they came (a counting sort); returns where each user's rows end."""
    ends = np.zeros(users, np.int64)
    cdef int64_t[::1] place = ends
    cdef Py_ssize_t i
    cdef int64_t count, total = 0
    assert len(user) == len(rows), "equally long"
    with nogil:
        for i in range(user.shape[0]):
            place[user[i]] += 1
        for i in range(users):
            count = place[i]
            place[i] = total
            total += count
        for i in range(user.shape[0]):
            rows[place[user[i]]] = <uint32_t> i
            place[user[i]] += 1
    return ends


cdef class Arrangement:
    """JaggedArray of purchases on their way into baskets: baskets and items of rows, times (or none), and what comes out."""

    cdef const uint32_t[::1] basket, item
    cdef const int64_t[::1] time
    cdef int64_t[::1] first_rows, sizes
    cdef uint32_t[::1] purchases
    cdef Sortable *mine
    cdef Sortable *starts
    cdef int64_t *newest
    cdef Py_ssize_t baskets, count, room, items
    cdef int64_t conflict

    def __cinit__(self, Py_ssize_t room, Py_ssize_t items):
        self.room, self.items, self.conflict = room, items, -1
        self.mine = <Sortable *> allocated(room, sizeof(Sortable))
        self.starts = <Sortable *> allocated(room, sizeof(Sortable))
        self.newest = <int64_t *> allocated(items, sizeof(int64_t))

    def __dealloc__(self):
        give_back(self.mine, self.room * sizeof(Sortable))
        give_back(self.starts, self.room * sizeof(Sortable))
        give_back(self.newest, self.items * sizeof(int64_t))

    cdef int add_user(self, const uint32_t *rows, Py_ssize_t count) noexcept nogil:
        """Add the baskets of one user, who has these rows."""
        cdef Py_ssize_t i, baskets = 0
        for i in range(count):
            self.mine[i] = Sortable(self.basket[rows[i]], rows[i])
        sort(self.mine, count)
        for i in range(count):
            if i == 0 or self.mine[i].key != self.mine[i - 1].key:
                # A basket's first row comes first; where there are no times, it says when the basket was.
                self.starts[baskets].key = self.mine[i].row
                if self.time.shape[0]:
                    self.starts[baskets].key = self.time[self.mine[i].row]
                self.starts[baskets].row = <uint32_t> i
                baskets += 1
            elif self.time.shape[0] and self.time[self.mine[i].row] != self.time[self.mine[i - 1].row]:
                self.conflict = max(self.conflict, <int64_t> self.mine[i].row)
        sort(self.starts, baskets)
        for i in range(baskets):
            self.add_basket(self.starts[i].row, count)
        return 0

    cdef int add_basket(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Add the basket whose rows start here, with each of its items once."""
        cdef Py_ssize_t before = self.count, i = start
        cdef uint32_t item
        self.first_rows[self.baskets] = self.mine[start].row
        self.baskets += 1
        while i < end and self.mine[i].key == self.mine[start].key:
            item = self.item[self.mine[i].row]
            if self.newest[item] != self.baskets:  # the last basket that an item was put into
                self.newest[item] = self.baskets
                self.purchases[self.count] = item
                self.count += 1
            i += 1
        self.sizes[self.baskets - 1] = self.count - before
        return 0


def group(rows, row_ends, basket, item, time, Py_ssize_t items):
    """Group rows, `rows_by_user`, into baskets, in order of (time, basket), or of first appearance without times.

    Returns the first row and the size of each basket, the items of all baskets, one after the other, and a row whose
    time contradicts its basket's (-1: there is none).
    """
    cdef const uint32_t[::1] row = rows
    cdef const int64_t[::1] ends = row_ends
    cdef Py_ssize_t user, begin = 0
    # NumPy allocates these: in huge pages, where there are some.
    first_rows, sizes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    purchases = np.empty(len(rows), np.uint32)
    cdef Arrangement work = Arrangement(int(np.diff(row_ends, prepend=0).max(initial=0)), items)
    work.basket, work.item, work.time = basket, item, time
    work.first_rows, work.sizes, work.purchases = first_rows, sizes, purchases
    with nogil:
        for user in range(ends.shape[0]):
            if ends[user] > begin:
                work.add_user(&row[begin], ends[user] - begin)
            begin = ends[user]
    return first_rows[: work.baskets], sizes[: work.baskets], purchases[: work.count], work.conflict


def tick(const int64_t[::1] values, int64_t low, uint32_t[::1] table):
    """Set the places of these values to 1."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            table[values[i] - low] = 1


def encode(const int64_t[::1] values, int64_t low, const uint32_t[::1] table, uint32_t[::1] codes):
    """Look up the codes of these values."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(values.shape[0]):
            codes[i] = table[values[i] - low]
