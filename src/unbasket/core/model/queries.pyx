"""Queries on histories: vectors of stored and unstored histories, popularity, uses of basket ids."""

from libc.stdint cimport INT64_MIN, int64_t, uint32_t
from libc.string cimport memcpy

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.memory.growable cimport GrowableArray
from unbasket.core.model.fold cimport FoldWorkspace, Rule, Vector, replay, rounded, weight
from unbasket.core.model.history cimport Basket, Histories, History
from unbasket.core.model.learned cimport share_of
from unbasket.core.util.topn cimport TopN


def vector(Histories histories, FoldWorkspace space, Rule rule, Py_ssize_t user):
    """Return a user's items and weights before rounding, folded from the start without checkpoints."""
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
        item[i], value[i] = space.touched[i], weight(space, space.touched[i], rule)
    space.clean()
    return items, weights


def vectors(Histories histories, FoldWorkspace space, Rule rule, const int64_t[::1] users):
    """Return the vectors of many users: the end of each, items, weights before rounding, and the scale of each."""
    cdef History history
    cdef Py_ssize_t row, i, end = 0, room = 0
    for row in range(users.shape[0]):
        room += histories.items.length(users[row])
    ends, scales = np.empty(users.shape[0], np.int64), np.empty(users.shape[0], np.uint32)
    items, weights = np.empty(room, np.uint32), np.empty(room)
    cdef int64_t[::1] stop = ends
    cdef uint32_t[::1] item = items, scale = scales
    cdef double[::1] value = weights
    with nogil:
        space.widen(histories.item_room)
        for row in range(users.shape[0]):
            histories.of(users[row], &history)
            replay(&history, rule, space)
            for i in range(space.count):
                item[end], value[end] = space.touched[i], weight(space, space.touched[i], rule)
                end += 1
            stop[row], scale[row] = end, rule.scale(space.groups)
            space.clean()
    return ends, items[:end], weights[:end], scales


def query(list baskets, FoldWorkspace space, Rule rule):
    """Return the fixed-point vector of a history that is not stored: lists of items, oldest first, grouped by m."""
    cdef Py_ssize_t count = sum(map(len, baskets)), i = 0, position = 0, room = 0
    cdef History history = History(NULL, len(baskets), NULL)
    history.baskets = <Basket *> allocated(len(baskets), sizeof(Basket))
    history.items = <uint32_t *> allocated(count, sizeof(uint32_t))
    for i, basket in enumerate(baskets):
        history.baskets[i] = Basket(0, 0, <uint32_t> len(basket), i % rule.group_size == 0)
        for item in basket:
            history.items[position] = item
            room = max(room, history.items[position] + 1)
            position += 1
    return fold_copy(&history, count, room, space, rule)


def query_with(Histories histories, Py_ssize_t user, list cart, FoldWorkspace space, Rule rule):
    """Return the fixed-point vector of a user's history plus one newest basket, without storing it."""
    cdef History stored, history
    cdef Py_ssize_t count = histories.items.length(user), room = histories.item_room, i
    histories.of(user, &stored)
    history = History(NULL, stored.length + 1, NULL)
    history.baskets = <Basket *> allocated(history.length, sizeof(Basket))
    history.items = <uint32_t *> allocated(count + len(cart), sizeof(uint32_t))
    memcpy(history.baskets, stored.baskets, stored.length * sizeof(Basket))
    memcpy(history.items, stored.items, count * sizeof(uint32_t))
    for i, item in enumerate(cart):
        history.items[count + i] = item
        room = max(room, history.items[count + i] + 1)
    cdef bint opens = rule.varying and histories._group_is_full(user, stored.length, rule.group_size)
    history.baskets[stored.length] = Basket(0, 0, <uint32_t> len(cart), opens)
    return fold_copy(&history, count + len(cart), room, space, rule)


cdef Vector fold_copy(History *history, Py_ssize_t items, Py_ssize_t room, FoldWorkspace space, Rule rule):
    """Return the fixed-point vector of a history with this many items, and free the history."""
    with nogil:
        space.widen(room)
        replay(history, rule, space)
    share = share_of(history, items, rule, space) if rule.learns else None
    give_back(history.baskets, history.length * sizeof(Basket))
    give_back(history.items, items * sizeof(uint32_t))
    cdef Vector vector = rounded(space, rule)
    vector.share = share
    return vector


def share(Histories histories, FoldWorkspace space, Rule rule, Py_ssize_t user):
    """Return a user's share of the learned sums, folded from the start without checkpoints."""
    cdef History history
    with nogil:
        histories.of(user, &history)
        space.widen(histories.item_room)
        replay(&history, rule, space)
    found = share_of(&history, histories.items.length(user), rule, space)
    space.clean()
    return found


def bought(Histories histories, Py_ssize_t user):
    """Return the items of a user's baskets, once per basket."""
    cdef History history
    cdef Py_ssize_t i
    histories.of(user, &history)
    items = np.empty(histories.items.length(user), np.uint32)
    cdef uint32_t[::1] item = items
    for i in range(item.shape[0]):
        item[i] = history.items[i]
    return items


def popularity(Histories histories):
    """Return the number of baskets with each item, by code."""
    cdef Py_ssize_t i
    counts = np.empty(histories.item_room, np.int64)
    cdef int64_t[::1] count = counts
    for i in range(histories.item_room):
        count[i] = histories.popularity[i]
    return counts


def largest(int64_t[::1] counts, const uint32_t[::1] items, GrowableArray order, Py_ssize_t n):
    """Return the n items (of `items`; None: of all) with the largest counts above 0, largest first, ties by `order`.

    Sets the counts that it has read to 0.
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
    """Add to each item's count its baskets since a time, of users `first` to `end`.

    Timed baskets are in order; baskets without a time may stand anywhere and are not counted.
    """
    cdef History history
    cdef Py_ssize_t user, basket, offset, i
    cdef int64_t time
    with nogil:
        for user in range(first, min(end, histories.baskets.count)):
            histories.of(user, &history)
            offset = histories.items.length(user)
            for basket in range(history.length - 1, -1, -1):
                time = history.baskets[basket].time
                offset -= history.baskets[basket].size
                if time < since and time != INT64_MIN:
                    break
                if time >= since:
                    for i in range(offset, offset + history.baskets[basket].size):
                        assert history.items[i] < counts.shape[0], "no such item"
                        counts[history.items[i]] += 1


def key_uses(Histories histories, Py_ssize_t count):
    """Count the baskets of each key below `count`."""
    cdef Py_ssize_t user, i
    cdef Basket *baskets
    uses = np.zeros(count, np.int64)
    cdef int64_t[::1] use = uses
    for user in range(histories.baskets.count):
        baskets = <Basket *> histories.baskets.first(user)
        for i in range(histories.baskets.length(user)):
            if 0 <= baskets[i].key < count:
                use[baskets[i].key] += 1
    return uses
