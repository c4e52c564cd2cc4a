"""Bulk loading: the histories of many new users at once."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.buffers cimport allocated, give_back
from unbasket.core.history cimport Basket
from unbasket.core.live cimport Live


@cython.final
cdef class Baskets:
    """Records of baskets, user after user, each user's oldest first."""

    def __init__(
        self, const int64_t[::1] keys, const uint8_t[::1] are_texts, const int64_t[::1] times,
        const int64_t[::1] sizes, const uint8_t[::1] opens, const int64_t[::1] rows
    ):
        cdef Py_ssize_t i
        assert self.records == NULL, "made once"
        assert len(keys) == len(are_texts) == len(times) == len(sizes) == len(opens) == len(rows), "equally long"
        self.count = len(keys)
        self.records = <Basket *> allocated(self.count, sizeof(Basket))
        with nogil:
            for i in range(self.count):
                self.records[i] = Basket(keys[i], times[i], rows[i], <uint32_t> sizes[i], are_texts[i], opens[i])

    def __dealloc__(self):
        give_back(self.records, self.count * sizeof(Basket))


cdef struct Counts:
    int64_t *having  # how many of the new users have each item
    int64_t *distinct  # how many items each of the new users has
    int64_t *newest  # the last user that an item was seen with, from 1 on


cdef int count_entries(
    Live live, Counts *counts, const int64_t[::1] users, const int64_t[::1] item_ends, const uint32_t[::1] items,
    const uint32_t[::1] purchases
) except -1 nogil:
    cdef Py_ssize_t user, i, first
    cdef uint32_t item
    for user in range(item_ends.shape[0]):
        if not live.in_pool(users[user]):
            continue
        first = item_ends[user - 1] if user else 0
        for i in range(first, item_ends[user]):
            item = items[purchases[i]]
            if counts.newest[item] != user + 1:
                counts.newest[item] = user + 1
                counts.having[item] += 1
                counts.distinct[user] += 1
    return 0


cdef int reserve(
    Live live, const int64_t[::1] users, const int64_t[::1] basket_ends, const int64_t[::1] item_ends,
    const uint32_t[::1] items, const uint32_t[::1] purchases
) except -1 nogil:
    """Reserve room for all new records: none moves while they are added, and want of memory shows before anything is."""
    cdef Counts counts
    cdef Py_ssize_t room = live.index.item_room, count = users.shape[0], i
    cdef int64_t *memory = <int64_t *> allocated(2 * room + count, sizeof(int64_t))
    counts.having, counts.newest, counts.distinct = memory, memory + room, memory + 2 * room
    count_entries(live, &counts, users, item_ends, items, purchases)
    live.index.expect(counts.having)
    for i in range(count):
        live.histories.baskets.reserve(users[i], basket_ends[i] - (basket_ends[i - 1] if i else 0))
        live.histories.items.reserve(users[i], item_ends[i] - (item_ends[i - 1] if i else 0))
        live.index.vectors.reserve(users[i], counts.distinct[i])
    give_back(memory, (2 * room + count) * sizeof(int64_t))
    return 0


def load(
    Live live, Baskets baskets, const int64_t[::1] users, const int64_t[::1] basket_ends, const int64_t[::1] item_ends,
    const uint32_t[::1] items, const uint32_t[::1] purchases
):
    """Give new users their histories: records in order, user after user, ending where the `_ends` say.

    Purchases are positions in `items`. If there is a pool, the users have joined the line for it.
    """
    cdef Py_ssize_t i, j, basket = 0, item = 0, most = 0
    assert len(users) == len(basket_ends) == len(item_ends), "equally long"
    for i in range(len(users)):
        most = max(most, item_ends[i] - (item_ends[i - 1] if i else 0))
    cdef uint32_t *codes = <uint32_t *> allocated(most, sizeof(uint32_t))
    try:
        with nogil:
            reserve(live, users, basket_ends, item_ends, items, purchases)
            for i in range(users.shape[0]):
                for j in range(item, item_ends[i]):
                    codes[j - item] = items[purchases[j]]
                live.histories.load(
                    users[i], baskets.records + basket, basket_ends[i] - basket, codes, item_ends[i] - item
                )
                live.replay(users[i])
                basket, item = basket_ends[i], item_ends[i]
            live.index.choose_crowd()
    finally:
        give_back(codes, most * sizeof(uint32_t))
