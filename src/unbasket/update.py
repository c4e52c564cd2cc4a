"""One event, all the way: change the history, rewind the fold, replay it, settle the index.

Learning, editing, late arrival and every way of forgetting are the same operation: one of the changes below, which
drops the marks behind it, and `refresh`. What is forgotten is answered with the items that nobody has any more, whose
codes the caller frees.
"""

import numpy as np
from numba import types
from numba.experimental import structref

from unbasket.kernels.jit import Codes, Floats, Int64s, Struct, compiled_struct, jit, new, whole
from unbasket.kernels.pool import LENGTH, NONE, START, lay_out, new_length, reserve
from unbasket.model import history, marks
from unbasket.model.fold import RULE, Rule, fold, replay, weights
from unbasket.model.history import FLAGS, HISTORIES, OPENS, ROW, Histories
from unbasket.model.marks import MARKS, Marks, new_marks
from unbasket.model.space import FOLD_SPACE, FoldSpace, clean, new_fold_space, widen
from unbasket.neighbors import index as indexes
from unbasket.neighbors.crowd import ITEM, WEIGHT
from unbasket.neighbors.index import (
    INDEX,
    PLACE,
    USER,
    Index,
    fixed_point,
    gather_crowd,
    grow_older,
    settle,
    vector_of,
)

ANYWHERE = LEARNED = -1  # for and of `learn`
TIED = -2


@structref.register
class LiveType(types.StructRef):
    """Numba's side of `Live`."""


class Live(Struct):
    """All that an event goes through, and the writer's work space."""

    histories: Histories
    marks: Marks
    index: Index
    space: FoldSpace
    rule: Rule


LIVE = compiled_struct(LiveType, Live, histories=HISTORIES, marks=MARKS, index=INDEX, space=FOLD_SPACE, rule=RULE)


@jit
def new_live(histories: Histories, index: Index, rule: Rule) -> Live:
    """The path of events into these histories and this index."""
    live = new(LIVE)
    live.histories = histories
    live.marks = new_marks()
    live.index = index
    live.space = new_fold_space()
    live.rule = rule
    return live


@jit
def admit(live: Live, users: int, items: int) -> None:
    """Make room for user codes below `users` and item codes below `items`."""
    history.admit(live.histories, users, items)
    marks.admit(live.marks, users)
    indexes.admit(live.index, users, items)


@jit
def refresh(live: Live, user: int) -> None:
    """Bring a user's vector up to date with his history, after a change of it."""
    _replay(live, user)
    grow_older(live.index)


@jit
def _replay(live: Live, user: int) -> None:
    count, groups = fold(live.histories, live.marks, user, live.rule, live.space)
    settle(live.index, user, live.space, count, groups, live.rule.group_decay)
    clean(live.space, count)


@jit
def learn(
    live: Live, user: int, position: int, key: int, text: int, row: int, time: int, items: Codes, search: bool
) -> tuple[int, int, int]:
    """Insert a basket at a position or, if that is ANYWHERE, where its time says; and bring the vector up to date.

    Nothing happens if there is a basket of this id, or if ids must decide between it and others of the same time.
    Returns where the one of this id is (LEARNED: there was none, TIED: see `slot`), the position, and the count before.
    A basket that comes last may be in this row of a store; of others, it is 0.
    """
    count = history.count(live.histories, user)
    if position == ANYWHERE:
        found = history.find(live.histories, user, key, text) if search else LEARNED
        position, tied = history.slot(live.histories, user, time)
        if found >= 0 or tied:
            return found if found >= 0 else TIED, position, count
    group_size = live.rule.group_size if live.rule.varying else 0
    marks.drop_from(live.marks, user, position)
    history.insert(live.histories, user, position, key, text + row * ROW, time, items, group_size)
    refresh(live, user)
    return LEARNED, position, count


@jit
def comes_last(histories: Histories, user: int, key: int, text: int, time: int, search: bool) -> bool:
    """Whether `learn` would insert a basket behind all others, and ids need not decide."""
    if search and history.find(histories, user, key, text) >= 0:
        return False
    position, tied = history.slot(histories, user, time)
    return position == history.count(histories, user) and not tied


@jit
def edit(live: Live, user: int, position: int, items: Codes) -> Codes:
    """Give the basket at a position other items."""
    removed = history.basket_items(live.histories, user, position)
    marks.drop_from(live.marks, user, position)
    history.replace(live.histories, user, position, items)
    return _vanished(live, removed)


@jit
def forget_basket(live: Live, user: int, key: int, text: int) -> tuple[int, int, Codes]:
    """Remove the basket of an id; returns how many items it held (0: it is not there) and how many baskets are left."""
    position = history.find(live.histories, user, key, text)
    if position < 0:
        return NONE, history.count(live.histories, user), np.zeros(0, np.uint32)
    removed = history.basket_items(live.histories, user, position)
    marks.drop_from(live.marks, user, position)
    size = len(removed)
    history.remove(live.histories, user, position)
    return size, history.count(live.histories, user), _vanished(live, removed)


@jit
def forget_item(live: Live, user: int, first: int, end: int, item: int) -> tuple[int, int, Int64s, Codes]:
    """Remove an item from the baskets at positions `first` to `end`.

    Returns how many held it, how many baskets are left, and the records of those that it was the last item of.
    """
    removed, oldest, gone = history.remove_item(live.histories, user, first, end, item)
    if removed > 0:
        marks.drop_from(live.marks, user, oldest)
    return removed, history.count(live.histories, user), gone, _vanished(live, np.array([item], np.uint32))


@jit
def forget_user(live: Live, user: int) -> tuple[Int64s, Codes]:
    """Remove all baskets of a user; returns their records and the items that vanished (some more than once)."""
    baskets, removed = history.read(live.histories, user, NONE, history.count(live.histories, user))
    marks.drop_from(live.marks, user, NONE)
    history.clear(live.histories, user)
    return baskets, _vanished(live, removed)


@jit
def _vanished(live: Live, items: Codes) -> Codes:
    count = 0
    for i in range(len(items)):
        if live.histories.popularity[items[i]] == 0:
            items[count] = items[i]
            count += 1
    return items[:count]


@jit
def count_entries(item_ends: Int64s, purchases: Codes, items: int) -> tuple[Int64s, Int64s]:
    """How many users have each of the items, and how many items each of the users has."""
    having = np.zeros(items, np.int64)
    newest = np.full(items, -1, np.int64)
    distinct = np.zeros(len(item_ends), np.int64)
    first = 0
    for i in range(len(item_ends)):
        for place in range(first, item_ends[i]):
            item = purchases[place]
            if newest[item] != i:
                newest[item] = i
                having[item] += 1
                distinct[i] += 1
        first = item_ends[i]
    return having, distinct


@jit
def new_lengths(live: Live, baskets: int, items: int, entries: int) -> tuple[int, int, int, int]:
    """How long arrays so many more records need: of baskets, of their items, of vectors, of the users of items."""
    return (
        new_length(live.histories.baskets, baskets),
        new_length(live.histories.items, items),
        new_length(live.index.vectors, entries),
        new_length(live.index.users, entries),
    )


@jit
def move(live: Live, baskets: Int64s, items: Codes, vectors: Codes, users: Codes) -> None:
    """Move all records into arrays of zeros of the `new_lengths`."""
    lay_out(live.histories.baskets, baskets)
    lay_out(live.histories.items, items)
    lay_out(live.index.vectors, vectors)
    lay_out(live.index.users, users)


@jit
def reserve_entries(index: Index, items: Codes, having: Int64s, users: Int64s, distinct: Int64s) -> None:
    """Reserve the places of new users' entries, as counted: no row moves while they are added."""
    for i in range(len(items)):
        reserve(index.users, items[i], index.users.rows[items[i], LENGTH] + having[i])
    for i in range(len(users)):
        reserve(index.vectors, users[i], distinct[i])


@jit
def load(
    live: Live,
    users: Int64s,
    basket_ends: Int64s,
    item_ends: Int64s,
    baskets: Int64s,
    items: Codes,
    purchases: Codes,
) -> None:
    """Give new users their histories: records in order, user after user, ending where the `_ends` say.

    Purchases are positions in `items`.
    """
    basket, item = NONE, NONE
    for i in range(len(users)):
        codes = items[purchases[item : item_ends[i]]]
        history.load(live.histories, users[i], baskets[basket : basket_ends[i]], codes)
        _replay(live, users[i])
        basket, item = basket_ends[i], item_ends[i]
    gather_crowd(live.index)


@jit
def vector(histories: Histories, space: FoldSpace, rule: Rule, user: int) -> tuple[Codes, Floats]:
    """A user's items and their weights before rounding, folded from the start: no mark is read or set."""
    baskets, items = history.read(histories, user, NONE, history.count(histories, user))
    widen(space, len(histories.popularity))
    count, groups = replay(baskets, items.reshape(-1, 1), rule, space)
    codes, values = weights(space, count, groups, rule.group_decay)
    clean(space, count)
    return codes, values


@jit
def query(baskets: Int64s, items: Codes, space: FoldSpace, rule: Rule) -> Codes:
    """The vector of a history that is not stored, as the index would hold it: records of item and weight."""
    widen(space, whole(items.max()) + 1)
    count, groups = replay(baskets, items.reshape(-1, 1), rule, space)
    codes, values = weights(space, count, groups, rule.group_decay)
    clean(space, count)
    records = np.empty((count, 2), np.uint32)
    kept = 0
    for i in range(count):
        records[kept, ITEM] = codes[i]
        records[kept, WEIGHT] = fixed_point(values[i])
        kept += records[kept, WEIGHT] != 0
    return records[:kept]


@jit
def open_groups(baskets: Int64s, group_size: int) -> None:
    """Flag the baskets that open a group when groups of m are filled from the oldest basket on."""
    for i in range(0, len(baskets), group_size):
        baskets[i, FLAGS] |= OPENS


@jit
def popularity(histories: Histories, items: Codes) -> Int64s:
    """In how many baskets each of these items is."""
    return histories.popularity[items]


@jit
def sizes(live: Live) -> tuple[int, int, int]:
    """How many baskets, purchases and entries of vectors there are."""
    return (
        live.histories.baskets.rows[:, LENGTH].sum(),
        live.histories.items.rows[:, LENGTH].sum(),
        live.index.vectors.rows[:, LENGTH].sum(),
    )


@jit
def item_counts(histories: Histories, index: Index, item: int) -> tuple[int, int]:
    """In how many baskets an item is, and in how many vectors."""
    return histories.popularity[item], index.users.rows[item, LENGTH]


@jit
def entries(index: Index, user: int) -> tuple[Codes, Codes, int]:
    """A user's vector, the same as listed under its items (0 where it is not), and the squared norm."""
    vector = vector_of(index, user)
    listed = np.zeros((len(vector), 2), np.uint32)
    for i in range(len(vector)):
        item = vector[i, ITEM]
        place = index.users.rows[item, START] + vector[i, PLACE]
        listed[i, ITEM] = item
        if index.users.data[place, USER] == user:
            listed[i, WEIGHT] = index.users.data[place, WEIGHT]
    return vector[:, : WEIGHT + 1].copy(), listed, index.norm[user]
