"""The index itself, array by array, after random events: nothing wrong, nothing left over."""

import random
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import pytest

from unbasket.kernels.jit import Int64s
from unbasket.kernels.pool import LENGTH, START, Pool
from unbasket.memory import Memory
from unbasket.model.history import SIZE, Histories
from unbasket.neighbors.crowd import ITEM, WEIGHT
from unbasket.neighbors.index import (
    MAGNITUDES,
    PLACE,
    USER,
    Index,
    fixed_point,
    gather_crowd,
    magnitude,
    magnitude_end,
)
from unbasket.params import Grouping, Params

Function = TypeVar("Function", bound=Callable[..., Any])
compiled: Callable[[Function], Function] = cast("Any", numba.njit)

GROUPINGS: list[Grouping] = ["fixed", "varying"]


@compiled
def _arrays(pool: Pool) -> tuple[Any, Any]:
    return pool.rows.copy(), pool.data.copy()


@compiled
def baskets_pool(histories: Histories) -> tuple[Any, Any]:
    return _arrays(histories.baskets)


@compiled
def items_pool(histories: Histories) -> tuple[Any, Any]:
    return _arrays(histories.items)


@compiled
def popularity(histories: Histories) -> Int64s:
    return histories.popularity.copy()


@compiled
def vectors_pool(index: Index) -> tuple[Any, Any]:
    return _arrays(index.vectors)


@compiled
def users_pool(index: Index) -> tuple[Any, Any]:
    return _arrays(index.users)


@compiled
def chains(index: Index) -> tuple[Any, Any, Any, Any, Any]:
    return index.norm.copy(), index.first.copy(), index.after.copy(), index.before.copy(), index.population.copy()


@compiled
def crowd_lists(index: Index) -> tuple[Any, Any, Any]:
    crowd = index.crowd
    return crowd.members.copy(), crowd.is_member.copy(), crowd.items[: crowd.count].copy()


@compiled
def crowd_sums(index: Index) -> tuple[Any, Any, Any, int, int]:
    crowd = index.crowd
    return crowd.sums.copy(), crowd.place.copy(), crowd.listed.copy(), crowd.count, crowd.records


def rows_of(pool: tuple[Any, Any]) -> list[list[list[int]]]:
    """The records of each row; fails if anything else in the pool is not zero."""
    rows, data = pool
    live = np.zeros(len(data), np.int64)
    for start, length, _ in rows:
        live[start : start + length] += 1
    assert live.max(initial=0) <= 1, "two rows share a record"
    assert not data[live == 0].any(), "something is left outside the live rows"
    return [data[row[START] : row[START] + row[LENGTH]].tolist() for row in rows]


def check_histories(memory: Memory) -> None:
    baskets, items = rows_of(baskets_pool(memory.histories)), rows_of(items_pool(memory.histories))
    users = set(memory.users.codes.values())
    assert {code for code, row in enumerate(baskets) if row} == users
    assert {code for code, row in enumerate(items) if row} == users
    for code in users:
        assert sum(record[SIZE] for record in baskets[code]) == len(items[code])
    bought = [item for row in items for (item,) in row]
    counts = popularity(memory.histories)
    assert counts.tolist() == np.bincount(np.array(bought, np.int64), minlength=len(counts)).tolist()
    assert set(bought) == set(memory.items.codes.values())


def check_vectors(memory: Memory) -> list[list[list[int]]]:
    """Vectors and the lists under items are the same entries, and point at each other."""
    vectors, users = rows_of(vectors_pool(memory.index)), rows_of(users_pool(memory.index))
    entries = {(user, record[ITEM], record[WEIGHT]) for user, row in enumerate(vectors) for record in row}
    listed = {(record[USER], item, record[WEIGHT]) for item, row in enumerate(users) for record in row}
    assert entries == listed
    assert len(entries) == sum(map(len, vectors)) == sum(map(len, users))
    assert all(weight > 0 for _, _, weight in entries)
    for user, row in enumerate(vectors):
        assert all(users[record[ITEM]][record[PLACE]][USER] == user for record in row)
    return vectors


def check_chains(memory: Memory, vectors: list[list[list[int]]]) -> None:
    norm, first, after, before, population = (array.tolist() for array in chains(memory.index))
    expected = [sum(record[WEIGHT] ** 2 for record in vector) for vector in vectors]
    assert norm == expected + [0] * (len(norm) - len(expected))
    found: list[int] = []
    for level in range(MAGNITUDES):
        members, previous, link = [], 0, first[level]
        while link:
            members.append(link - 1)
            assert before[link - 1] == previous
            assert magnitude(norm[link - 1]) == level
            previous, link = link, after[link - 1]
        assert population[level] == len(members)
        found += members
    assert sorted(found) == sorted(memory.users.codes.values())
    for code in set(range(len(norm))) - set(found):
        assert (after[code], before[code]) == (0, 0)


def check_crowd(memory: Memory, vectors: list[list[list[int]]]) -> None:
    members, is_member, items = crowd_lists(memory.index)
    sums, place, listed, count, records = crowd_sums(memory.index)
    actual = np.flatnonzero(is_member).tolist()
    assert set(actual) <= set(members.tolist())
    assert set(actual) <= set(memory.users.codes.values())
    assert len(members) <= memory.params.neighbors
    expected = np.zeros(len(sums), np.int64)
    for user in actual:
        for record in vectors[user]:
            expected[record[ITEM]] += record[WEIGHT]
    assert sums.tolist() == expected.tolist()
    assert records == sum(len(vectors[user]) for user in actual)
    assert len(set(items.tolist())) == count
    assert set(np.flatnonzero(sums)) <= set(items.tolist())
    assert listed.tolist() == sums[items].tolist() + [0] * (len(listed) - count)
    assert place[items].tolist() == list(range(1, count + 1))
    assert np.count_nonzero(place) == count


def check(memory: Memory) -> None:
    check_histories(memory)
    vectors = check_vectors(memory)
    check_chains(memory, vectors)
    check_crowd(memory, vectors)


def random_event(memory: Memory, chance: random.Random, users: int, items: int, growth: float) -> None:
    user: Any = chance.choice([chance.randrange(users), f"u{chance.randrange(users)}"])
    basket: Any = chance.choice([chance.randrange(6), f"b{chance.randrange(6)}"])
    item = chance.randrange(items)
    if chance.random() < growth:
        bought: list[Any] = chance.sample(range(items), chance.randint(1, min(items, 8)))
        memory.learn(user, bought, basket, chance.choice([None, chance.randrange(5)]))
        return
    forms = [(None, None), (basket, None), (basket, item), (None, item)]
    memory.forget(user, *chance.choices(forms, [1, 4, 4, 4])[0])


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("neighbors", [3, 50])
@pytest.mark.parametrize("seed", range(3))
def test_random_events(grouping: Grouping, neighbors: int, seed: int) -> None:
    chance = random.Random(seed)
    memory = Memory(Params(group_size=2, neighbors=neighbors, grouping=grouping))
    for step in range(600):
        growth = 0.7 if step < 300 else 0.2
        random_event(memory, chance, users=15, items=12, growth=growth)
        if step % 10 == 0:
            check(memory)
        if step % 97 == 0:
            gather_crowd(memory.index)
            check(memory)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("seed", range(3))
def test_loading_known_and_new_users(grouping: Grouping, seed: int) -> None:
    chance = random.Random(seed)
    params = Params(group_size=2, neighbors=5, grouping=grouping)
    source, target = Memory(params), Memory(params)
    for _ in range(200):
        random_event(source, chance, users=30, items=40, growth=0.9)
        random_event(target, chance, users=10, items=20, growth=0.7)
    target.load(source.orders(source.users.sorted()))
    check(target)
    assert set(source.users.codes) <= set(target.users.codes)
    for user in source.users.sorted():
        target.forget(user, None, None)
    check(target)


@pytest.mark.parametrize("seed", range(3))
def test_after_forgetting_everybody_all_is_zero(seed: int) -> None:
    chance = random.Random(seed)
    memory = Memory(Params(group_size=2, neighbors=5))
    for _ in range(200):
        random_event(memory, chance, users=30, items=40, growth=0.9)
    gather_crowd(memory.index)
    remaining = memory.users.sorted()
    chance.shuffle(remaining)
    for user in remaining:
        assert memory.forget(user, None, None).users == 1
    check(memory)
    pools = [baskets_pool(memory.histories), items_pool(memory.histories)]
    pools += [vectors_pool(memory.index), users_pool(memory.index)]
    for rows, data in pools:
        assert not rows[:, LENGTH].any()
        assert not data.any()
    assert not popularity(memory.histories).any()
    assert not any(array.any() for array in chains(memory.index))
    sums, _, listed, _, records = crowd_sums(memory.index)
    assert not sums.any()
    assert not listed.any()
    assert records == 0
    assert not crowd_lists(memory.index)[1].any()
    assert memory.users.sorted() == memory.items.sorted() == []
    assert memory.texts.codes == {}


def test_the_crowd_is_those_with_the_smallest_norms() -> None:
    memory = Memory(Params(neighbors=4))
    sizes = [5, 2, 9, 1, 7, 3, 8, 4]
    for user, size in enumerate(sizes):
        memory.learn(user, list(range(size)), 0, None)
    gather_crowd(memory.index)
    members = crowd_lists(memory.index)[0]
    assert sorted(sizes[code] for code in members) == [1, 2, 3, 4]
    check(memory)


def test_the_crowd_is_chosen_anew_from_time_to_time() -> None:
    memory = Memory(Params(neighbors=4))
    for user in range(200):
        memory.learn(user, [user % 9], 0, None)
    assert len(crowd_lists(memory.index)[0]) == 4
    check(memory)


@pytest.mark.parametrize("norm", [32, 33, 63, 1000, 2**24, 2**48 - 1, 2**48, 3**30, 2**53 - 1])
def test_a_magnitude_ends_where_the_next_begins(norm: int) -> None:
    level = magnitude(norm)
    assert 0 < level < MAGNITUDES
    assert magnitude_end(level - 1) <= norm < magnitude_end(level)
    assert magnitude(magnitude_end(level)) == level + 1
    assert magnitude(magnitude_end(level) - 1) == level


@pytest.mark.parametrize("norm", [*range(1, 32), 2**53 + 1, 2**61 - 1, 2**62])
def test_the_keys_of_users_who_share_an_item_stay_below_the_end(norm: int) -> None:
    """What the search needs: such a key is at most the norm less 2. Rounding moves the ends of extreme magnitudes."""
    assert norm - 2 < magnitude_end(magnitude(norm))


def test_magnitudes_rise_with_norms() -> None:
    levels = [magnitude(norm) for norm in [*range(1, 500), *(2**i + d for i in range(10, 62) for d in (-1, 0, 1))]]
    assert levels == sorted(levels)
    assert len(set(levels)) > 200


def test_weights_are_rounded_to_the_nearest_even() -> None:
    one = 2.0**-24
    assert [fixed_point(x * one) for x in (0.49, 0.5, 0.51, 1.5, 2.5, 2**24)] == [0, 0, 1, 2, 2, 2**24]
