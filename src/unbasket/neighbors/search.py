"""Questions to the index: who is nearest, and what the nearest have (paper, section 2.2).

Exact, and never a pass over all users: a query meets the users that share an item with it, and walks the chains of
small norms for those that do not (in Euclidean space a small vector with no item in common can be nearer than a
large one with many). Everything before the final scores is integer arithmetic.
"""

import numpy as np
from numba import int64, types, uint32
from numba.experimental import structref

from unbasket.kernels.jit import Codes, Floats, Int64s, Struct, compiled_struct, jit, new, whole
from unbasket.kernels.pool import LENGTH, NONE, SINGLE, START, grown
from unbasket.kernels.select import smallest_first
from unbasket.neighbors.crowd import BLOCK, ITEM, WEIGHT
from unbasket.neighbors.index import MAGNITUDES, ONE, USER, Index, magnitude_end, vector_of

_BIAS = 2**61  # no sum of weights comes near it
_DONE = -1  # in place of an item's sum: banned, or offered already


@structref.register
class SearchSpaceType(types.StructRef):
    """Numba's side of `SearchSpace`."""


class SearchSpace(Struct):
    """Work space of one query at a time; all zero between queries.

    Per user: the dot product, the users met, the candidates and their keys. Per item: the sum over the neighbors,
    the items seen. Lists have one place more than they need, to append without a branch.
    """

    dot: Int64s
    met: Codes
    candidates: Codes
    keys: Int64s
    sums: Int64s
    seen: Codes


SEARCH_SPACE = compiled_struct(
    SearchSpaceType,
    SearchSpace,
    dot=int64[::1],
    met=uint32[::1],
    candidates=uint32[::1],
    keys=int64[::1],
    sums=int64[::1],
    seen=uint32[::1],
)


@jit
def new_search_space() -> SearchSpace:
    """A work space for an empty index."""
    space = new(SEARCH_SPACE)
    space.dot = np.zeros(0, np.int64)
    space.met = np.zeros(1, np.uint32)
    space.candidates = np.zeros(1, np.uint32)
    space.keys = np.zeros(1, np.int64)
    space.sums = np.zeros(0, np.int64)
    space.seen = np.zeros(1, np.uint32)
    return space


@jit
def _widen(space: SearchSpace, index: Index) -> None:
    """Make room for all users and items of the index."""
    users, items = len(index.norm), len(index.users.rows)
    space.dot = grown(space.dot, users)
    space.met = grown(space.met, users + 1)
    space.candidates = grown(space.candidates, users + 1)
    space.keys = grown(space.keys, users + 1)
    space.sums = grown(space.sums, items)
    space.seen = grown(space.seen, items + 1)


@jit
def _meet(index: Index, query: Codes, space: SearchSpace) -> int:
    """Dot products of the query with all users that share an item with it; returns how many those are."""
    rows, data = index.users.rows, index.users.data
    dot, met = space.dot, space.met
    count = 0
    for i in range(len(query)):
        item, value = query[i, ITEM], whole(query[i, WEIGHT])
        owners = data[rows[item, START] : rows[item, START] + rows[item, LENGTH]]
        for j in range(len(owners)):
            user = owners[j, USER]
            product = dot[user]
            met[count] = user
            count += product == 0  # weights are positive: a product of 0 was never touched
            dot[user] = product + value * owners[j, WEIGHT]
    return count


@jit
def _magnitude_of(index: Index, rank: int) -> int:
    """The magnitude up to which there are at least `rank` users; the largest one if there are not so many."""
    users = 0
    for level in range(MAGNITUDES):
        users += index.population[level]
        if users >= rank:
            return level
    return MAGNITUDES - 1


@jit
def nearest(index: Index, query: Codes, user: int, k: int, order: Int64s, space: SearchSpace) -> int:
    """Find the k users nearest to the query vector, `user` himself left out (-1: nobody).

    Leaves them, in no order, in `space.candidates`, with |v|^2 - 2 v.q in `space.keys` (the squared distance less
    the constant |q|^2); returns how many there are: k, or all others if they are fewer.
    """
    _widen(space, index)
    count = _meet(index, query, space)
    # At least k others have a norm below the limit, so the k nearest have a key below it.
    level = _magnitude_of(index, k + 1)
    limit = magnitude_end(level) if level < MAGNITUDES - 1 else whole(2**63 - 1)
    norm, dot, met, candidates, keys = index.norm, space.dot, space.met, space.candidates, space.keys
    first, after = index.first, index.after
    found = NONE
    for small in range(level + 1):
        link = first[small]
        while link != 0:
            other = link - 1
            if dot[other] == 0 and other != user:
                candidates[found] = other
                keys[found] = norm[other]
                found += 1
            link = after[other]
    for i in range(count):
        neighbor = met[i]
        key = norm[neighbor] - 2 * dot[neighbor]
        if key < limit and neighbor != user:
            candidates[found] = neighbor
            keys[found] = key
            found += 1
        dot[neighbor] = 0
    met[: count + 1] = 0
    if found > k:
        smallest_first(keys, candidates, found, k, order)
        candidates[k:found] = 0
        keys[k:found] = 0
    return min(k, found)


@jit
def _forget_candidates(space: SearchSpace, count: int) -> None:
    space.candidates[:count] = 0
    space.keys[:count] = 0


@jit
def neighbors(index: Index, query: Codes, user: int, k: int, order: Int64s, space: SearchSpace) -> tuple[Codes, Int64s]:
    """The k nearest users, in no order, and their squared distances in units of 2^-48."""
    count = nearest(index, query, user, k, order, space)
    norm = 0
    for i in range(len(query)):
        norm += whole(query[i, WEIGHT]) * query[i, WEIGHT]
    users, distances = space.candidates[:count].copy(), space.keys[:count] + norm
    _forget_candidates(space, count)
    return users, distances


@jit
def _use_crowd(index: Index, count: int, space: SearchSpace) -> bool:
    """Whether it is less work to start from the crowd's sums than from zero."""
    rows, is_member, candidates = index.vectors.rows, index.crowd.is_member, space.candidates
    shared = 0
    for i in range(count):
        shared += rows[candidates[i], LENGTH] * is_member[candidates[i]]
    return index.crowd.records + index.crowd.count // 4 < 2 * shared


@jit
def _sum_neighbors(index: Index, count: int, crowd: bool, space: SearchSpace) -> int:
    """Add up the vectors of the first `count` candidates; returns how many items are in `space.seen`.

    With the crowd, what is added up is the difference to its sums. It is stored plus a bias, to tell a difference
    of 0 from none.
    """
    rows, data, candidates, marked = index.vectors.rows, index.vectors.data, space.candidates, space.dot
    sums, seen = space.sums, space.seen
    is_member, members = index.crowd.is_member, index.crowd.members
    items = NONE
    for i in range(count):
        user = candidates[i]
        if crowd and is_member[user]:
            marked[user] = 1
        else:
            vector = data[rows[user, START] : rows[user, START] + rows[user, LENGTH]]
            items = _add(vector, SINGLE, sums, seen, items)
    if crowd:
        for user in members:
            if is_member[user] and marked[user] == 0:
                vector = data[rows[user, START] : rows[user, START] + rows[user, LENGTH]]
                items = _add(vector, -SINGLE, sums, seen, items)
        for i in range(count):
            marked[candidates[i]] = 0
    return items


@jit
def _add(vector: Codes, sign: int, sums: Int64s, seen: Codes, items: int) -> int:
    """Add a vector to the sums, or subtract it, and list the items that were not seen before."""
    for i in range(len(vector)):
        item = vector[i, ITEM]
        total = sums[item]
        new = whole(total == 0)
        seen[items] = item
        items += new
        sums[item] = total + new * _BIAS + sign * vector[i, WEIGHT]
    return items


@jit
def _offer(item: int, score: float, items: Codes, scores: Floats, count: int, order: Int64s) -> int:
    """Put an item into the list of the best, best first, if it belongs there; returns the list's length.

    Free places of the list have a score of 0, and an item needs a score above that.
    """
    if score < scores[-1] or score <= 0.0:
        return count
    if count == len(items):
        if score == scores[-1] and order[item] > order[items[-1]]:
            return count
        count -= 1
    last = count
    while last > 0 and (
        score > scores[last - 1] or (score == scores[last - 1] and order[item] < order[items[last - 1]])
    ):
        items[last], scores[last] = items[last - 1], scores[last - 1]
        last -= 1
    items[last], scores[last] = item, score
    return count + 1


@jit
def recommend(
    index: Index,
    query: Codes,
    user: int,
    k: int,
    alpha: float,
    banned: Codes,
    user_order: Int64s,
    item_order: Int64s,
    space: SearchSpace,
    items: Codes,
    scores: Floats,
) -> int:
    """The best items by p = alpha u + (1 - alpha) mean of the neighbors, best first, without the banned ones.

    Fills `items` and `scores`; returns how many have a score above 0.
    """
    found = nearest(index, query, user, k, user_order, space)
    crowd = _use_crowd(index, found, space)
    seen = _sum_neighbors(index, found, crowd, space)
    _forget_candidates(space, found)
    share = (1.0 - alpha) / max(found, 1)
    sums, listed, initial = space.sums, space.seen, index.crowd.sums
    for i in range(len(banned)):
        sums[banned[i]] = _DONE
    count = NONE
    for i in range(len(query)):
        item = query[i, ITEM]
        if sums[item] != _DONE:
            total = initial[item] * crowd + (sums[item] - _BIAS if sums[item] != 0 else 0)
            count = _offer(item, alpha * query[i, WEIGHT] + share * total, items, scores, count, item_order)
            sums[item] = _DONE
    for i in range(seen):
        item = listed[i]
        if sums[item] != _DONE:
            total = initial[item] * crowd + sums[item] - _BIAS
            count = _offer(item, share * total, items, scores, count, item_order)
            sums[item] = _DONE
    if crowd:
        count = _offer_crowd(index, share, sums, items, scores, count, item_order)
    _wipe_sums(query, banned, seen, space)
    for i in range(count):
        scores[i] /= ONE
    return count


@jit
def _offer_crowd(
    index: Index, share: float, sums: Int64s, items: Codes, scores: Floats, count: int, order: Int64s
) -> int:
    """Offer the items whose sum is the crowd's, passing over blocks of the list that have no sum large enough."""
    names, totals, peaks = index.crowd.items, index.crowd.listed, index.crowd.peaks
    for start in range(0, index.crowd.count, BLOCK):
        if share * peaks[start // BLOCK] >= scores[-1]:
            for i in range(start, min(start + BLOCK, index.crowd.count)):
                if share * totals[i] >= scores[-1] and sums[names[i]] != _DONE:
                    count = _offer(names[i], share * totals[i], items, scores, count, order)
    return count


@jit
def _wipe_sums(query: Codes, banned: Codes, seen: int, space: SearchSpace) -> None:
    sums, listed = space.sums, space.seen
    for i in range(seen):
        sums[listed[i]] = 0
    listed[: seen + 1] = 0
    for i in range(len(query)):
        sums[query[i, ITEM]] = 0
    for i in range(len(banned)):
        sums[banned[i]] = 0


@jit
def recommend_all(
    index: Index,
    users: Int64s,
    k: int,
    alpha: float,
    banned: Codes,
    user_order: Int64s,
    item_order: Int64s,
    space: SearchSpace,
    items: Codes,
    scores: Floats,
    counts: Int64s,
) -> None:
    """`recommend` for each of many users, into the rows of `items` and `scores`."""
    for i in range(len(users)):
        query = vector_of(index, users[i])
        counts[i] = recommend(
            index, query, users[i], k, alpha, banned, user_order, item_order, space, items[i], scores[i]
        )


@jit
def holders(index: Index, user: int, item: int, k: int, order: Int64s, space: SearchSpace) -> tuple[int, int, int, int]:
    """For an explanation: own weight of an item, the neighbors' sum, how many of them have it, how many they are."""
    found = nearest(index, vector_of(index, user), user, k, order, space)
    own, total, having = _weight_in(index, user, item), 0, 0
    for i in range(found):
        value = _weight_in(index, whole(space.candidates[i]), item)
        total += value
        having += value > 0
    _forget_candidates(space, found)
    return own, total, having, found


@jit
def _weight_in(index: Index, user: int, item: int) -> int:
    vector = vector_of(index, user)
    for i in range(len(vector)):
        if vector[i, ITEM] == item:
            return whole(vector[i, WEIGHT])
    return whole(0)


@jit
def sum_of(index: Index, users: Codes, space: SearchSpace) -> tuple[Codes, Int64s]:
    """The items that these users have, and the sums of their weights over the users."""
    _widen(space, index)
    seen = NONE
    for i in range(len(users)):
        seen = _add(vector_of(index, whole(users[i])), SINGLE, space.sums, space.seen, seen)
    items, totals = space.seen[:seen].copy(), np.empty(seen, np.int64)
    for i in range(seen):
        totals[i] = space.sums[items[i]] - _BIAS
        space.sums[items[i]] = 0
    space.seen[: seen + 1] = 0
    return items, totals


@jit
def best(
    query: Codes, items: Codes, totals: Int64s, found: int, alpha: float, order: Int64s, sums: Int64s, n: int
) -> tuple[Codes, Floats]:
    """The n best items, best first, of a query whose `found` neighbors have these items with these totals.

    An item may come more than once, with parts of its total. `sums` is work space, zero for every item. The arithmetic
    is that of `recommend`, to the bit.
    """
    for i in range(len(items)):
        sums[items[i]] += totals[i]
    share = (1.0 - alpha) / max(found, 1)
    names, scores = np.zeros(n, np.uint32), np.zeros(n)
    count = NONE
    for i in range(len(query)):
        item = query[i, ITEM]
        count = _offer(item, alpha * query[i, WEIGHT] + share * sums[item], names, scores, count, order)
        sums[item] = _DONE
    for i in range(len(items)):
        item = items[i]
        if sums[item] != _DONE:
            count = _offer(item, share * sums[item], names, scores, count, order)
            sums[item] = _DONE
    for i in range(len(items)):
        sums[items[i]] = 0
    for i in range(len(query)):
        sums[query[i, ITEM]] = 0
    return names[:count], scores[:count] / ONE
