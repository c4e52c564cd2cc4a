"""Bulk loading: the histories of many new users at once."""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.model.history cimport Basket
from unbasket.core.index.index cimport Index
from unbasket.core.index.events cimport Live
from unbasket.core.index.shard cimport Shard


@cython.final
cdef class Baskets:
    """Records of baskets, user after user, each user's oldest first."""

    def __init__(
        self, const int64_t[::1] keys, const uint8_t[::1] are_texts, const int64_t[::1] times,
        const int64_t[::1] sizes, const uint8_t[::1] opens
    ):
        cdef Py_ssize_t i
        assert self.records == NULL, "made once"
        assert len(keys) == len(are_texts) == len(times) == len(sizes) == len(opens), "equally long"
        self.count = len(keys)
        self.records = <Basket *> allocated(self.count, sizeof(Basket))
        with nogil:
            for i in range(self.count):
                self.records[i] = Basket(keys[i], times[i], <uint32_t> sizes[i], are_texts[i], opens[i])

    def __dealloc__(self):
        give_back(self.records, self.count * sizeof(Basket))


cdef struct Batch:
    Py_ssize_t count  # of users
    const int64_t *users
    const int64_t *basket_ends
    const int64_t *item_ends
    const uint32_t *items
    const uint32_t *purchases


cdef struct Counts:
    int64_t *having  # how many of the new users of a shard have each item
    int64_t *newest  # the last user that an item was seen with, from 1 on
    int64_t *distinct  # how many items there are for each row of the shard


cdef int count_entries(Index index, const Batch *batch, Py_ssize_t number, Counts *counts) except -1 nogil:
    """Count what the new users of a shard have."""
    cdef Py_ssize_t user, slot, i, first = 0
    cdef uint32_t item
    for user in range(batch.count):
        slot = index.slot_of(batch.users[user])
        if slot >= 0 and slot // index.shard_size == number:
            for i in range(first, batch.item_ends[user]):
                item = batch.items[batch.purchases[i]]
                if counts.newest[item] != user + 1:
                    counts.newest[item] = user + 1
                    counts.having[item] += 1
                    counts.distinct[index.row_of(slot)] += 1
        first = batch.item_ends[user]
    return 0


cdef int reserve(Index index, const Batch *batch, Py_ssize_t number) except -1 nogil:
    """Reserve room for the new records of a shard: none moves while they are added."""
    cdef Counts counts
    cdef Py_ssize_t room = index.item_room, size = 2 * room + index.shard_size, row
    cdef int64_t *memory = <int64_t *> allocated(size, sizeof(int64_t))
    cdef void *shard = index.table[number]
    counts.having, counts.newest, counts.distinct = memory, memory + room, memory + 2 * room
    count_entries(index, batch, number, &counts)
    (<Shard> shard).expect(counts.having, room)
    for row in range((<Shard> shard).end):
        if counts.distinct[row]:
            (<Shard> shard).vectors.reserve(row, counts.distinct[row])
    give_back(memory, size * sizeof(int64_t))
    return 0


cdef int reserve_all(Live live, const Batch *batch) except -1 nogil:
    """Give slots to the new users of the pool, and reserve room for all records: want of memory shows before any is added."""
    cdef Py_ssize_t i
    for i in range(batch.count):
        live.histories.baskets.reserve(batch.users[i], batch.basket_ends[i] - (batch.basket_ends[i - 1] if i else 0))
        live.histories.items.reserve(batch.users[i], batch.item_ends[i] - (batch.item_ends[i - 1] if i else 0))
        if live.in_pool(batch.users[i]):
            live.index.claim(batch.users[i])
    for i in range(live.index.shard_count):
        reserve(live.index, batch, i)
    return 0


cdef int give_slots_back(Index index, const Batch *batch) except -1 nogil:
    cdef Py_ssize_t slot, i
    for i in range(batch.count):
        slot = index.slot_of(batch.users[i])
        if slot >= 0:
            index.release(slot)
    return 0


cdef int load_histories(Live live, Baskets baskets, const Batch *batch, uint32_t *codes) except -1 nogil:
    cdef Py_ssize_t i, j, basket = 0, item = 0
    for i in range(batch.count):
        for j in range(item, batch.item_ends[i]):
            codes[j - item] = batch.items[batch.purchases[j]]
        live.histories.load(
            batch.users[i], baskets.records + basket, batch.basket_ends[i] - basket, codes, batch.item_ends[i] - item
        )
        basket, item = batch.basket_ends[i], batch.item_ends[i]
    return 0


def load(
    Live live, Baskets baskets, const int64_t[::1] users, const int64_t[::1] basket_ends, const int64_t[::1] item_ends,
    const uint32_t[::1] items, const uint32_t[::1] purchases
):
    """Give new users their histories: records in order, user after user, ending where the `_ends` say.

    Purchases are positions in `items`. There is at least one user, and none is in the index. If there is a pool, the users
    have joined the line for it.
    """
    assert len(users) == len(basket_ends) == len(item_ends), "equally long"
    cdef Batch batch = Batch(len(users), &users[0], &basket_ends[0], &item_ends[0], &items[0], &purchases[0])
    cdef Py_ssize_t i, most = 0
    for i in range(batch.count):
        most = max(most, item_ends[i] - (item_ends[i - 1] if i else 0))
    cdef uint32_t *codes = <uint32_t *> allocated(most, sizeof(uint32_t))
    try:
        with nogil:
            reserve_all(live, &batch)
    except MemoryError:
        give_slots_back(live.index, &batch)
        give_back(codes, most * sizeof(uint32_t))
        raise
    try:
        with nogil:
            load_histories(live, baskets, &batch, codes)
            for i in range(batch.count):
                live.replay(users[i])
            live.index.choose_hubs()
    finally:
        give_back(codes, most * sizeof(uint32_t))
