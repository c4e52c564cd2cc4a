"""Questions about what is held: vectors before rounding, entries, counts."""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from unbasket.core.util.topn cimport TopN
from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.memory.growable cimport GrowableArray
from unbasket.core.model.fold cimport Rule, look, replay, weight
from unbasket.core.model.history cimport Basket, Histories, History
from unbasket.core.index.index cimport Index
from unbasket.core.index.events cimport Live
from unbasket.core.index.shard cimport Shard, Posting, fixed_point
from unbasket.core.model.workspace cimport FoldWorkspace
from unbasket.core.model.vector cimport VectorEntry, Vector


def vector(Histories histories, FoldWorkspace space, Rule rule, Py_ssize_t user):
    """A user's items and their weights before rounding, folded from the start: no checkpoint is read or set."""
    cdef History history
    cdef Py_ssize_t i
    with nogil:
        histories.of(user, &history)
        space.widen(histories.item_room)
        replay(&history, rule, space)
    items, weights = np.empty(space.count, np.uint32), np.empty(space.count)
    cdef uint32_t[::1] item = items
    cdef double[::1] value = weights
    for i in range(space.count):
        item[i], value[i] = space.touched[i], weight(space, space.touched[i], rule.group_decay)
    space.clean()
    return items, weights


cdef Vector rounded(FoldWorkspace space, Rule rule):
    """The folded vector as the index would hold it; the work space is clean then."""
    cdef Vector result = Vector.of(space.count)
    cdef Py_ssize_t i
    for i in range(space.count):
        result.add(space.touched[i], <uint32_t> fixed_point(weight(space, space.touched[i], rule.group_decay)))
    space.clean()
    return result


def vector_of(Live live, FoldWorkspace space, Py_ssize_t user):
    """A user's vector as the index holds it or, if the user is not in the pool, would hold it."""
    if live.in_pool(user):
        return live.index.vector_of(user)
    with nogil:
        look(live.histories, live.checkpoints, user, live.rule, space)
    return rounded(space, live.rule)


def query(list baskets, FoldWorkspace space, Rule rule):
    """The vector of a history that is not stored, as the index would hold it.

    Baskets are lists of items, oldest first; they are grouped by m from the oldest on.
    """
    cdef Py_ssize_t count = sum(map(len, baskets)), i = 0, place = 0, room = 0
    cdef History history = History(NULL, len(baskets), NULL)
    history.baskets = <Basket *> allocated(len(baskets), sizeof(Basket))
    history.items = <uint32_t *> allocated(count, sizeof(uint32_t))
    for i, basket in enumerate(baskets):
        history.baskets[i] = Basket(0, 0, <uint32_t> len(basket), False, i % rule.group_size == 0)
        for item in basket:
            history.items[place] = item
            room = max(room, history.items[place] + 1)
            place += 1
    with nogil:
        space.widen(room)
        replay(&history, rule, space)
    give_back(history.baskets, len(baskets) * sizeof(Basket))
    give_back(history.items, count * sizeof(uint32_t))
    return rounded(space, rule)


def query_with(Histories histories, Py_ssize_t user, list cart, FoldWorkspace space, Rule rule):
    """The vector of a user's history with one more basket, the newest, as the index would hold it. Nothing is stored."""
    cdef History stored, history
    cdef Py_ssize_t count = histories.items.length(user), i
    histories.of(user, &stored)
    history = History(NULL, stored.length + 1, NULL)
    history.baskets = <Basket *> allocated(history.length, sizeof(Basket))
    history.items = <uint32_t *> allocated(count + len(cart), sizeof(uint32_t))
    memcpy(history.baskets, stored.baskets, stored.length * sizeof(Basket))
    memcpy(history.items, stored.items, count * sizeof(uint32_t))
    for i, item in enumerate(cart):
        history.items[count + i] = item
    cdef bint opens = rule.varying and histories._group_is_full(user, stored.length, rule.group_size)
    history.baskets[stored.length] = Basket(0, 0, <uint32_t> len(cart), False, opens)
    with nogil:
        space.widen(histories.item_room)
        replay(&history, rule, space)
    give_back(history.baskets, history.length * sizeof(Basket))
    give_back(history.items, (count + len(cart)) * sizeof(uint32_t))
    return rounded(space, rule)


def bought(Histories histories, Py_ssize_t user):
    """The items of a user's baskets; one that is in several comes several times."""
    cdef History history
    cdef Py_ssize_t i
    histories.of(user, &history)
    items = np.empty(histories.items.length(user), np.uint32)
    cdef uint32_t[::1] item = items
    for i in range(item.shape[0]):
        item[i] = history.items[i]
    return items


def entries(Index index, Py_ssize_t user):
    """A user's vector, the same as listed under its items (0 where it is not), and the squared norm."""
    cdef Py_ssize_t slot = index.slot_of(user), row = index.row_of(slot), i
    cdef Posting *postings
    cdef VectorEntry *own
    cdef Shard shard
    vector, listed = {}, {}
    if not 0 <= slot < index.slot_end:
        return vector, listed, 0
    shard = index.shards[slot >> index.shard_bits]
    own = shard.vector(row)
    for i in range(shard.vectors.length(row)):
        postings = <Posting *> shard.postings.first(own[i].item)
        vector[own[i].item] = own[i].weight
        is_there = own[i].place < shard.postings.length(own[i].item) and postings[own[i].place].row == row
        listed[own[i].item] = postings[own[i].place].weight if is_there else 0
    return vector, listed, shard.norm[row]


def popularity(Histories histories):
    """In how many baskets each item is, by code."""
    cdef Py_ssize_t i
    counts = np.empty(histories.item_room, np.int64)
    cdef int64_t[::1] count = counts
    for i in range(histories.item_room):
        count[i] = histories.popularity[i]
    return counts


def largest(int64_t[::1] counts, const uint32_t[::1] items, GrowableArray order, Py_ssize_t n):
    """The n items with the largest counts, by code, and their counts, largest first; equal ones in this order.

    Only these items count (None: all), and only with counts above 0. Their counts are 0 then.
    """
    cdef Py_ssize_t i, room = min(n, counts.shape[0])
    cdef uint32_t item
    cdef TopN best = TopN()
    if room == 0:
        return []
    best.reserve(room, order.data)
    for i in range(counts.shape[0] if items is None else items.shape[0]):
        item = <uint32_t> i if items is None else items[i]
        assert item < counts.shape[0], "no such item"
        best.push(item, <double> counts[item])
        counts[item] = 0  # it may be listed twice
    return [(code, int(count)) for code, count in best.drain(1.0)]


def add_popularity(Histories histories, Py_ssize_t first, Py_ssize_t end, int64_t since, int64_t[::1] counts):
    """Add to the count of each item the baskets that it is in, of users `first` to `end`, and since a time.

    A history is in order, except that baskets without a time, which are not counted, may stand anywhere.
    """
    cdef History history
    cdef Py_ssize_t user, basket, place, i
    cdef int64_t time
    with nogil:
        for user in range(first, min(end, histories.baskets.count)):
            histories.of(user, &history)
            place = histories.items.length(user)
            for basket in range(history.length - 1, -1, -1):
                time = history.baskets[basket].time
                place -= history.baskets[basket].size
                if time < since and time != INT64_MIN:
                    break
                if time >= since:
                    for i in range(place, place + history.baskets[basket].size):
                        assert history.items[i] < counts.shape[0], "no such item"
                        counts[history.items[i]] += 1


def text_uses(Histories histories, Py_ssize_t count):
    """How many baskets have each of so many texts, by code, as their id."""
    cdef Py_ssize_t user, i
    cdef Basket *baskets
    uses = np.zeros(count, np.int64)
    cdef int64_t[::1] use = uses
    for user in range(histories.baskets.count):
        baskets = <Basket *> histories.baskets.first(user)
        for i in range(histories.baskets.length(user)):
            if baskets[i].is_text and 0 <= baskets[i].key < count:
                use[baskets[i].key] += 1
    return uses


def sizes(Live live):
    """How many baskets, purchases and entries of vectors there are."""
    cdef Py_ssize_t user, row, baskets = 0, purchases = 0, held = 0
    cdef Shard shard
    for user in range(live.histories.baskets.count):
        baskets += live.histories.baskets.rows[user].length
        purchases += live.histories.items.rows[user].length
    for shard in live.index.shards:
        for row in range(shard.end):
            held += shard.vectors.length(row)
    return baskets, purchases, held
