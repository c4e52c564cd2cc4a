"""The crowd: the k users with the smallest norms, whose vectors are summed in advance.

In Euclidean space small vectors are near to everyone, so most neighborhoods are the crowd but for a few users. A
query adds those few, subtracts the members that are not its neighbors, and is done with a fifth of the work. Sums
are exact integers, so the result is the very one of adding up all neighbors; who is in the crowd is only a matter
of speed, and is chosen anew from time to time.
"""

import numpy as np
from numba import boolean, int32, int64, types, uint32
from numba.experimental import structref

from unbasket.kernels.jit import Bools, Codes, Int32s, Int64s, Struct, jit, new
from unbasket.kernels.pool import NONE, grown

ITEM, WEIGHT = 0, 1
BLOCK = 64


@structref.register
class CrowdType(types.StructRef):
    """Numba's side of `Crowd`."""


class Crowd(Struct):
    """Members, the sum of their vectors per item, and a list of the items that have one: `items`, sums `listed`.

    `place` is an item's position in that list, from 1 on; `peaks` has the largest sum of each
    BLOCK of the list; `records` the total length of the members' vectors;
    `age` the number of changes to the index since the members were chosen.
    """

    size: int
    members: Codes
    is_member: Bools
    sums: Int64s
    place: Int32s
    items: Codes
    listed: Int64s
    peaks: Int64s
    count: int
    records: int
    age: int


CROWD = CrowdType(  # type: ignore[no-untyped-call]
    [
        ("size", int64),
        ("members", uint32[::1]),
        ("is_member", boolean[::1]),
        ("sums", int64[::1]),
        ("place", int32[::1]),
        ("items", uint32[::1]),
        ("listed", int64[::1]),
        ("peaks", int64[::1]),
        ("count", int64),
        ("records", int64),
        ("age", int64),
    ]
)


@jit
def new_crowd(size: int) -> Crowd:
    """A crowd of up to `size` members, with none so far."""
    crowd = new(CROWD)
    crowd.size = size
    crowd.members = np.zeros(0, np.uint32)
    crowd.is_member = np.zeros(0, np.bool_)
    crowd.sums = np.zeros(0, np.int64)
    crowd.place = np.zeros(0, np.int32)
    crowd.items = np.zeros(0, np.uint32)
    crowd.listed = np.zeros(0, np.int64)
    crowd.peaks = np.zeros(0, np.int64)
    crowd.count = crowd.records = crowd.age = 0
    return crowd


@jit
def admit(crowd: Crowd, users: int, items: int) -> None:
    """Make room for user codes below `users` and item codes below `items`."""
    crowd.is_member = grown(crowd.is_member, users)
    crowd.sums = grown(crowd.sums, items)
    crowd.place = grown(crowd.place, items)
    crowd.items = grown(crowd.items, items)
    crowd.listed = grown(crowd.listed, items)
    crowd.peaks = grown(crowd.peaks, items // BLOCK + 1)


@jit
def establish(crowd: Crowd, members: Codes) -> None:
    """Make these users, whose vectors are to be joined next, the members."""
    crowd.is_member[:] = False
    crowd.sums[:] = 0
    crowd.place[:] = 0
    crowd.items[:] = 0
    crowd.listed[:] = 0
    crowd.peaks[:] = 0
    crowd.count = crowd.records = crowd.age = 0
    crowd.members[:] = 0
    crowd.members = members
    for member in members:
        crowd.is_member[member] = True


@jit
def leave(crowd: Crowd, user: int) -> None:
    """Strike a member whose vector is gone off the list."""
    kept = 0
    for i in range(len(crowd.members)):
        if crowd.members[i] != user:
            crowd.members[kept] = crowd.members[i]
            kept += 1
    crowd.members[kept:] = 0
    crowd.members = crowd.members[:kept]
    crowd.is_member[user] = False


@jit
def join(crowd: Crowd, vector: Codes, sign: int) -> None:
    """Add a member's vector to the sums, or take it out with a `sign` of -1; the list has the items with a sum."""
    sums, place, items = crowd.sums, crowd.place, crowd.items
    for i in range(len(vector)):
        item = vector[i, ITEM]
        sums[item] += sign * vector[i, WEIGHT]
        if place[item] == 0:
            items[crowd.count] = item
            crowd.count += 1
            place[item] = crowd.count
        _list(crowd, place[item] - 1, sums[item])
        if sums[item] == 0:
            _unlist(crowd, item)
    crowd.records += sign * len(vector)


@jit
def _unlist(crowd: Crowd, item: int) -> None:
    """Take an item off the list; the last one takes its place."""
    last, hole = crowd.count - 1, crowd.place[item] - 1
    moved = crowd.items[last]
    crowd.items[hole], crowd.place[moved] = moved, hole + 1
    _list(crowd, hole, crowd.listed[last])
    _list(crowd, last, NONE)
    crowd.items[last], crowd.place[item] = 0, 0
    crowd.count = last


@jit
def _list(crowd: Crowd, position: int, total: int) -> None:
    """Set a sum of the list; the peak of its block is looked for anew if it was this one and has sunk."""
    listed, block = crowd.listed, position // BLOCK
    old, peak = listed[position], crowd.peaks[block]
    listed[position] = total
    if old == peak and total < peak:
        peak = total
        for i in range(block * BLOCK, min(block * BLOCK + BLOCK, len(listed))):
            peak = max(peak, listed[i])
    crowd.peaks[block] = max(peak, total)


@jit
def sort(crowd: Crowd) -> None:
    """Put the largest sums first on the list, which makes the peaks tell."""
    best = np.argsort(-crowd.listed[: crowd.count])
    items, sums = crowd.items[: crowd.count].copy(), crowd.listed[: crowd.count].copy()
    crowd.listed[:] = 0
    crowd.peaks[:] = 0
    for position in range(crowd.count):
        item = items[best[position]]
        crowd.items[position], crowd.place[item] = item, position + 1
        _list(crowd, position, sums[best[position]])
