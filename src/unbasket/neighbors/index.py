"""The live index: every user's vector, and for every item the users who have it.

Weights are whole multiples of 2^-24. Dot products, squared norms and sums of vectors are then exact integers, so
they do not depend on the order of summation: neither on threads, nor on codes, nor on the order of past events.
Nothing overflows: a user's weights sum to at most the size of his largest basket (each is a decayed mean of 0/1
entries) and none exceeds 1, so with baskets of at most MAX_BASKET items a squared distance stays below 2^62.
"""

import numpy as np
from numba import int32, int64, types
from numba.experimental import structref

from unbasket.kernels.jit import Codes, Int32s, Int64s, Struct, compiled_struct, jit, new, whole
from unbasket.kernels.pool import (
    CODE_POOL,
    LENGTH,
    SINGLE,
    START,
    Pool,
    add_rows,
    append,
    code_pool,
    copy,
    grown,
    pop,
)
from unbasket.kernels.select import smallest_first
from unbasket.model.fold import weight
from unbasket.model.space import FoldSpace
from unbasket.neighbors import crowd
from unbasket.neighbors.crowd import CROWD, ITEM, WEIGHT, Crowd, join, new_crowd

ONE = 2**24  # the fixed-point weight 1.0
MAX_BASKET = 8192

PLACE = 2  # a record of a user's vector: ITEM, WEIGHT and its position among the item's users
USER = 0  # a record of an item's users: USER, WEIGHT

SHADES = 32  # magnitudes per power of two
MAGNITUDES = 64 * SHADES


@structref.register
class IndexType(types.StructRef):
    """Numba's side of `Index`."""


class Index(Struct):
    """Rows of vectors per user, rows of users per item, squared norms, users chained by magnitude, and the crowd.

    The chains (`first` of each magnitude, `after` and `before` of each user; user + 1, 0 ends a chain) give the
    users with the smallest norms without a pass over all of them.
    """

    vectors: Pool
    users: Pool
    norm: Int64s
    first: Int32s
    after: Int32s
    before: Int32s
    population: Int64s
    crowd: Crowd


INDEX = compiled_struct(
    IndexType,
    Index,
    vectors=CODE_POOL,
    users=CODE_POOL,
    norm=int64[::1],
    first=int32[::1],
    after=int32[::1],
    before=int32[::1],
    population=int64[::1],
    crowd=CROWD,
)


@jit
def new_index(crowd_size: int) -> Index:
    """An index of no users."""
    index = new(INDEX)
    index.vectors = code_pool(3)
    index.users = code_pool(2)
    index.norm = np.zeros(0, np.int64)
    index.first = np.zeros(MAGNITUDES, np.int32)
    index.after = np.zeros(0, np.int32)
    index.before = np.zeros(0, np.int32)
    index.population = np.zeros(MAGNITUDES, np.int64)
    index.crowd = new_crowd(crowd_size)
    return index


@jit
def admit(index: Index, users: int, items: int) -> None:
    """Make room for user codes below `users` and item codes below `items`."""
    add_rows(index.vectors, users)
    add_rows(index.users, items)
    crowd.admit(index.crowd, users, items)
    index.norm = grown(index.norm, users)
    index.after = grown(index.after, users)
    index.before = grown(index.before, users)


@jit
def vector_of(index: Index, user: int) -> Codes:
    """The records of a user's vector (a view)."""
    start = index.vectors.rows[user, START]
    return index.vectors.data[start : start + index.vectors.rows[user, LENGTH]]


@jit
def magnitude(norm: int) -> int:
    """A coarse, monotone logarithm of a squared norm: its leading bits as a float."""
    return max(whole(0), (np.float64(norm).view(np.int64) >> 47) - (1023 << 5))


@jit
def magnitude_end(level: int) -> int:
    """The smallest squared norm that is of a larger magnitude."""
    return whole(whole((level + 1 + (1023 << 5)) << 47).view(np.float64))


@jit
def settle(index: Index, user: int, space: FoldSpace, count: int, groups: int, group_decay: float) -> None:
    """Make a user's vector that of the fold in the work space: O(items of the user), not of all users.

    Items whose weight rounds to zero are not in the index. Leaves `last` zero for the items it has dealt with,
    which tells the new ones apart.
    """
    is_member = index.crowd.is_member[user]
    if is_member:
        join(index.crowd, vector_of(index, user), -SINGLE)
    norm = _change_entries(index, user, space, groups, group_decay)
    norm += _add_entries(index, user, space, count, groups, group_decay)
    _rank(index, user, norm)
    if is_member:
        join(index.crowd, vector_of(index, user), SINGLE)
        if norm == 0:
            crowd.leave(index.crowd, user)


@jit
def fill(index: Index, ends: Int64s, items: Codes, weights: Codes) -> None:
    """Give vectors to new users, with codes from 0 on: entries one user after another, ending where `ends` say."""
    first = whole(0)
    for user in range(len(ends)):
        norm = whole(0)
        for i in range(first, ends[user]):
            value = whole(weights[i])
            if value != 0:
                _add(index.vectors, index.users, user, whole(items[i]), value)
                norm += value * value
        _rank(index, user, norm)
        first = ends[user]


@jit
def grow_older(index: Index) -> None:
    """Count a change; after many of them, choose the crowd anew."""
    index.crowd.age += 1
    if index.crowd.age > 64 + (len(index.norm) + index.crowd.records) // 16:  # about what it costs, in entries
        gather_crowd(index)


@jit
def _change_entries(index: Index, user: int, space: FoldSpace, groups: int, group_decay: float) -> int:
    """Set the new weights of the items that the user's vector has; returns the sum of their squares."""
    level, last = space.level, space.last
    norm = 0
    i = whole(0)
    while i < index.vectors.rows[user, LENGTH]:
        data, place = index.vectors.data, index.vectors.rows[user, START] + i
        item, value = whole(data[place, ITEM]), whole(0)
        if last[item] != 0:
            value = fixed_point(weight(level[item], last[item], groups, group_decay))
            last[item] = 0
        if value == 0:
            _remove(index, user, i)
            continue
        if value != data[place, WEIGHT]:
            data[place, WEIGHT] = value
            index.users.data[index.users.rows[item, START] + data[place, PLACE], WEIGHT] = value
        norm += value * value
        i += 1
    return norm


@jit
def _add_entries(index: Index, user: int, space: FoldSpace, count: int, groups: int, group_decay: float) -> int:
    """Add the items that the user's vector lacks; returns the sum of their squared weights."""
    level, last, touched = space.level, space.last, space.touched
    vectors, users = index.vectors, index.users
    norm = 0
    for i in range(count):
        item = whole(touched[i])
        if last[item] != 0:
            value = fixed_point(weight(level[item], last[item], groups, group_decay))
            if value != 0:
                _add(vectors, users, user, item, value)
                norm += value * value
    return norm


@jit
def gather_crowd(index: Index) -> None:
    """Choose the users with the smallest norms as the crowd; which of equal ones does not matter."""
    size = index.crowd.size
    codes, keys = np.zeros(len(index.norm), np.uint32), np.zeros(len(index.norm), np.int64)
    count = whole(0)
    for level in range(MAGNITUDES):
        link = index.first[level]
        while link != 0:
            codes[count], keys[count] = link - 1, index.norm[link - 1]
            count += 1
            link = index.after[link - 1]
        if count >= size:
            break
    if count > size:
        smallest_first(keys, codes, count, size, np.arange(len(codes)))
    crowd.establish(index.crowd, codes[: min(size, count)].copy())
    for member in index.crowd.members:
        join(index.crowd, vector_of(index, whole(member)), SINGLE)
    crowd.sort(index.crowd)


@jit
def fixed_point(value: float) -> int:
    """A weight as a multiple of 2^-24."""
    return whole(np.rint(value * ONE))


@jit
def _add(vectors: Pool, users: Pool, user: int, item: int, value: int) -> None:
    place = append(users, item)
    data = users.data
    data[place, USER] = user
    data[place, WEIGHT] = value
    number = place - users.rows[item, START]
    place = append(vectors, user)
    data = vectors.data
    data[place, ITEM] = item
    data[place, WEIGHT] = value
    data[place, PLACE] = number


@jit
def _remove(index: Index, user: int, i: int) -> None:
    """Remove the i-th record of a vector. The last record of each of the two rows moves into the hole."""
    vectors, users = index.vectors.data, index.users.data
    start, last = index.vectors.rows[user, START], index.vectors.rows[user, LENGTH] - 1
    item, number = whole(vectors[start + i, ITEM]), whole(vectors[start + i, PLACE])
    first, final = index.users.rows[item, START], index.users.rows[item, LENGTH] - 1
    if number != final:
        copy(users, first + final, users, first + number, SINGLE)
        vectors[_place_of(index, whole(users[first + number, USER]), item), PLACE] = number
    pop(index.users, item)
    if i != last:
        copy(vectors, start + last, vectors, start + i, SINGLE)
    pop(index.vectors, user)


@jit
def _place_of(index: Index, user: int, item: int) -> int:
    """Where the record of an item is, of a user who has it."""
    data, place = index.vectors.data, index.vectors.rows[user, START]
    while data[place, ITEM] != item:
        place += 1
    return place


@jit
def _rank(index: Index, user: int, norm: int) -> None:
    """Store a user's squared norm and move him to the chain of its magnitude; a norm of 0 takes him out."""
    first, after, before = index.first, index.after, index.before
    if index.norm[user] != 0:
        old = magnitude(index.norm[user])
        if before[user] != 0:
            after[before[user] - 1] = after[user]
        else:
            first[old] = after[user]
        if after[user] != 0:
            before[after[user] - 1] = before[user]
        after[user] = before[user] = 0
        index.population[old] -= 1
    index.norm[user] = norm
    if norm != 0:
        new = magnitude(norm)
        if first[new] != 0:
            before[first[new] - 1] = user + 1
            after[user] = first[new]
        first[new] = user + 1
        index.population[new] += 1
