"""The index itself, array by array, after random events: nothing wrong, nothing left over."""

import random
from typing import Any

import numpy as np
import pytest

from unbasket.core import inspection, views
from unbasket.core.rows import Rows
from unbasket.core.views import BASKET, CODE, ENTRY, POSTING, fixed_point, magnitude, magnitude_end
from unbasket.engine.memory import Memory
from unbasket.params import Grouping, Params

GROUPINGS: list[Grouping] = ["fixed", "varying"]


def rows_of(rows: Rows, record: np.dtype[Any]) -> list[list[Any]]:
    """The records of each row; fails if anything else in their memory is not zero."""
    assert rows.litter() == 0
    return [views.row(rows, row, record).tolist() for row in range(rows.count)]


def check_histories(memory: Memory) -> None:
    baskets, items = rows_of(memory.histories.baskets, BASKET), rows_of(memory.histories.items, CODE)
    users = set(memory.users.codes.values())
    assert {code for code, row in enumerate(baskets) if row} == users
    assert {code for code, row in enumerate(items) if row} == users
    for code in users:
        assert sum(size for _, _, _, size, _, _ in baskets[code]) == len(items[code])
    bought = [item for row in items for item in row]
    counts = views.popularity(memory.histories)
    assert counts.tolist() == np.bincount(np.array(bought, np.int64), minlength=len(counts)).tolist()
    assert set(bought) == set(memory.items.codes.values())


def check_vectors(memory: Memory) -> list[list[tuple[int, int, int]]]:
    """Vectors and postings are the same entries, and point at each other."""
    vectors, postings = rows_of(memory.index.vectors, ENTRY), rows_of(memory.index.postings, POSTING)
    entries = {(user, item, weight) for user, vector in enumerate(vectors) for item, weight, _ in vector}
    listed = {(user, item, weight) for item, row in enumerate(postings) for user, weight in row}
    assert entries == listed
    assert len(entries) == sum(map(len, vectors)) == sum(map(len, postings))
    assert all(weight > 0 for _, _, weight in entries)
    for user, vector in enumerate(vectors):
        assert all(postings[item][place][0] == user for item, _, place in vector)
    return vectors


def check_norms(memory: Memory, vectors: list[list[tuple[int, int, int]]]) -> None:
    norms = views.norms(memory.index).tolist()
    expected = [sum(weight**2 for _, weight, _ in vector) for vector in vectors]
    assert norms == expected[: len(norms)]
    assert not any(expected[len(norms) :])
    assert {code for code, norm in enumerate(norms) if norm} == set(memory.users.codes.values())
    population = views.population(memory.index)
    levels = np.array([magnitude(norm) for norm in norms if norm], np.int64)
    assert population.tolist() == np.bincount(levels, minlength=len(population)).tolist()


def check_crowd(memory: Memory, vectors: list[list[tuple[int, int, int]]]) -> None:
    crowd, arrays = memory.index.crowd, views.crowd(memory.index.crowd)
    members, items, sums = arrays["members"], arrays["items"], arrays["sums"]
    assert sorted(members[: crowd.member_count].tolist()) == np.flatnonzero(arrays["is_member"]).tolist()
    assert set(members[: crowd.member_count].tolist()) <= set(memory.users.codes.values())
    assert crowd.member_count <= memory.params.neighbors
    expected = np.zeros(len(sums), np.int64)
    for user in members[: crowd.member_count].tolist():
        for item, weight, _ in vectors[user]:
            expected[item] += weight
    assert sums.tolist() == expected.tolist()
    assert crowd.records == sum(len(vectors[user]) for user in members[: crowd.member_count].tolist())
    assert sorted(items[: crowd.count].tolist()) == np.flatnonzero(sums).tolist()
    assert arrays["listed"][: crowd.count].tolist() == sums[items[: crowd.count]].tolist()
    assert arrays["place"][items[: crowd.count]].tolist() == list(range(1, crowd.count + 1))
    assert np.count_nonzero(arrays["place"]) == crowd.count
    for rest in (members[crowd.member_count :], items[crowd.count :], arrays["listed"][crowd.count :]):
        assert not rest.any()
    assert not any(inspection.shared_faults(memory._live))


def check(memory: Memory) -> None:
    check_histories(memory)
    vectors = check_vectors(memory)
    check_norms(memory, vectors)
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
            memory.index.gather_crowd()
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
    memory.index.gather_crowd()
    remaining = memory.users.sorted()
    chance.shuffle(remaining)
    for user in remaining:
        assert memory.forget(user, None, None).users == 1
    check(memory)
    live = memory._live
    for pool in (memory.histories.baskets, memory.histories.items, memory.index.vectors, memory.index.postings):
        assert not views.rows(pool)["length"].any()
    for pool in (memory.histories.outdated, live.items, live.gone, live.marks.levels):
        assert (pool.litter(), pool.blocks.used) == (0, 0)
    assert not views.popularity(memory.histories).any()
    assert not views.norms(memory.index).any()
    assert not views.population(memory.index).any()
    assert not views.newest_marks(live.marks).any()
    assert not any(array.any() for array in views.crowd(memory.index.crowd).values())
    assert memory.index.crowd.records == 0
    assert views.is_clean(live.space)
    assert memory.users.sorted() == memory.items.sorted() == []
    assert memory.texts.codes == {}


def test_the_crowd_is_those_with_the_smallest_norms() -> None:
    memory = Memory(Params(neighbors=4))
    sizes = [5, 2, 9, 1, 7, 3, 8, 4]
    for user, size in enumerate(sizes):
        memory.learn(user, list(range(size)), 0, None)
    memory.index.gather_crowd()
    members = views.crowd(memory.index.crowd)["members"][: memory.index.crowd.member_count].tolist()
    assert sorted(sizes[code] for code in members) == [1, 2, 3, 4]
    check(memory)


def test_the_crowd_is_chosen_anew_from_time_to_time() -> None:
    memory = Memory(Params(neighbors=4))
    for user in range(200):
        memory.learn(user, [user % 9], 0, None)
    assert memory.index.crowd.member_count == 4
    check(memory)


@pytest.mark.parametrize("norm", [32, 33, 63, 1000, 2**24, 2**48 - 1, 2**48, 3**30, 2**53 - 1])
def test_a_magnitude_ends_where_the_next_begins(norm: int) -> None:
    level = magnitude(norm)
    assert magnitude_end(level - 1) <= norm < magnitude_end(level)
    assert magnitude(magnitude_end(level)) == level + 1
    assert magnitude(magnitude_end(level) - 1) == level


@pytest.mark.parametrize("norm", [*range(1, 70), 2**53 + 1, 2**61 - 1, 2**61 + 2**56 - 1, 2**62 - 1])
def test_every_norm_is_below_the_end_of_its_magnitude(norm: int) -> None:
    """What the search needs of its limit, also where magnitudes are finer than whole numbers, or floats are coarser."""
    assert norm < magnitude_end(magnitude(norm))


def test_magnitudes_rise_with_norms() -> None:
    levels = [magnitude(norm) for norm in [*range(1, 500), *(2**i + d for i in range(10, 62) for d in (-1, 0, 1))]]
    assert levels == sorted(levels)
    assert len(set(levels)) > 200


def test_weights_are_rounded_to_the_nearest_even() -> None:
    one = 2.0**-24
    assert [fixed_point(x * one) for x in (0.49, 0.5, 0.51, 1.5, 2.5, 2**24)] == [0, 0, 1, 2, 2, 2**24]
