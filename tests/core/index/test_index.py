"""The index itself, array by array, after random events: nothing wrong, nothing left over."""

import random
from itertools import chain
from typing import Any

import numpy as np
import pytest

from unbasket.core.check import testing
from unbasket.core.check.testing import BASKET, CODE, ENTRY, POSTING, fixed_point, magnitude, magnitude_end
from unbasket.core.memory.jagged import JaggedArray
from unbasket.engine.state import EngineState
from unbasket.engine.verification import InvariantChecker
from unbasket.params import Grouping, Params

GROUPINGS: list[Grouping] = ["fixed", "varying"]
Vectors = dict[int, list[tuple[int, int, int]]]  # by slot


@pytest.fixture(autouse=True, params=[4, 64], ids=["shards of 4", "shards of 64"])
def shard_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Every test, with users in many shards of the index, and in one."""
    monkeypatch.setattr("unbasket.engine.model_state.SHARD_SIZE", request.param)
    return int(request.param)


def rows_of(rows: JaggedArray, record: np.dtype[Any]) -> list[list[Any]]:
    """The records of each row; fails if anything else in their memory is not zero."""
    assert rows.residue() == 0
    return [testing.row(rows, row, record).tolist() for row in range(rows.count)]


def check_histories(memory: EngineState) -> None:
    baskets, items = rows_of(memory.histories.baskets, BASKET), rows_of(memory.histories.items, CODE)
    users = set(memory.users.codes.values())
    assert {code for code, row in enumerate(baskets) if row} == users
    assert {code for code, row in enumerate(items) if row} == users
    for code in users:
        assert sum(size for _, _, size, _, _ in baskets[code]) == len(items[code])
    bought = [item for row in items for item in row]
    counts = testing.popularity(memory.histories)
    assert counts.tolist() == np.bincount(np.array(bought, np.int64), minlength=len(counts)).tolist()
    assert set(bought) == set(memory.items.codes.values())


def check_vectors(memory: EngineState) -> Vectors:
    """In each shard, vectors and postings are the same entries, and point at each other."""
    index, found = memory.index, {}
    for number, shard in enumerate(index.shards):
        vectors, postings = rows_of(shard.vectors, ENTRY), rows_of(shard.postings, POSTING)
        entries = {(row, item, weight) for row, vector in enumerate(vectors) for item, weight, _ in vector}
        listed = {(row, item, weight) for item, record in enumerate(postings) for row, weight in record}
        assert entries == listed
        assert len(entries) == sum(map(len, vectors)) == sum(map(len, postings))
        assert all(weight > 0 for _, _, weight in entries)
        for row, vector in enumerate(vectors):
            assert all(postings[item][place][0] == row for item, _, place in vector)
        assert not any(vectors[shard.end :])
        found.update({number * index.shard_size + row: vector for row, vector in enumerate(vectors[: shard.end])})
    return found


def check_slots(memory: EngineState, vectors: Vectors) -> None:
    """Whoever is there has a slot with a vector; the other slots are empty, and chained."""
    index = memory.index
    slots = (
        {code: slot - 1 for code, slot in enumerate(testing.slots(index).tolist()) if slot}
        if memory.users.names
        else {}
    )
    assert set(slots) == set(memory.users.codes.values())
    owners = [owner for shard in index.shards for owner in testing.owners(shard).tolist()]
    assert len(owners) == index.slot_end == len(vectors)
    assert {slot: owners[slot] for slot in slots.values()} == {slot: code for code, slot in slots.items()}
    assert {slot for slot, vector in vectors.items() if vector} == set(slots.values())
    unused = sorted(owners[slot] for slot in vectors if slot not in set(slots.values()))
    others = {slot + 1 for slot in vectors} - {slot + 1 for slot in slots.values()}
    assert len(others - set(unused)) == min(1, len(others))  # each but the first is the next of another


def check_norms(memory: EngineState, vectors: Vectors) -> None:
    norms = [norm for shard in memory.index.shards for norm in testing.norms(shard).tolist()]
    assert norms == [sum(weight**2 for _, weight, _ in vectors[slot]) for slot in range(len(norms))]
    population = testing.population(memory.index)
    levels = np.array([magnitude(norm) for norm in norms if norm], np.int64)
    assert population.tolist() == np.bincount(levels, minlength=len(population)).tolist()


def check_hubs(memory: EngineState, vectors: Vectors) -> None:
    hubs, arrays = memory.index.hubs, testing.hubs(memory.index.hubs)
    members, heap, sums = arrays["members"], arrays["heap"], arrays["sums"]
    numbers = [number for shard in memory.index.shards for number in testing.members(shard).tolist()]
    assert {slot: number for slot, number in enumerate(numbers) if number} == {
        slot: number for number, slot in enumerate(members[: hubs.member_count].tolist(), 1)
    }
    assert hubs.member_count <= memory.params.neighbors
    expected = np.zeros(len(sums), np.int64)
    for slot in members[: hubs.member_count].tolist():
        assert vectors[slot]
        for item, weight, _ in vectors[slot]:
            expected[item] += weight
    assert sums.tolist() == expected.tolist()
    assert hubs.records == sum(len(vectors[slot]) for slot in members[: hubs.member_count].tolist())
    items, totals = heap["item"][: hubs.count], heap["total"][: hubs.count].tolist()
    assert sorted(items.tolist()) == np.flatnonzero(sums).tolist()
    assert totals == sums[items].tolist()
    assert all(totals[(place - 1) // 2] >= total for place, total in enumerate(totals) if place)
    assert arrays["place"][items].tolist() == list(range(1, hubs.count + 1))
    assert np.count_nonzero(arrays["place"]) == hubs.count
    assert not members[hubs.member_count :].any()
    assert not heap["item"][hubs.count :].any()
    assert not heap["total"][hubs.count :].any()
    assert [*chain.from_iterable(InvariantChecker(memory).shared_faults())] == []


def check(memory: EngineState) -> None:
    check_histories(memory)
    vectors = check_vectors(memory)
    check_slots(memory, vectors)
    check_norms(memory, vectors)
    check_hubs(memory, vectors)


def random_event(memory: EngineState, chance: random.Random, users: int, items: int, growth: float) -> None:
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
    memory = EngineState(Params(group_size=2, neighbors=neighbors, grouping=grouping))
    for step in range(600):
        growth = 0.7 if step < 300 else 0.2
        random_event(memory, chance, users=15, items=12, growth=growth)
        if step % 10 == 0:
            check(memory)
        if step % 97 == 0:
            memory.index.gather_hubs()
            check(memory)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("seed", range(3))
def test_loading_known_and_new_users(grouping: Grouping, seed: int) -> None:
    chance = random.Random(seed)
    params = Params(group_size=2, neighbors=5, grouping=grouping)
    source, target = EngineState(params), EngineState(params)
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
    memory = EngineState(Params(group_size=2, neighbors=5))
    for _ in range(200):
        random_event(memory, chance, users=30, items=40, growth=0.9)
    memory.index.gather_hubs()
    remaining = memory.users.sorted()
    chance.shuffle(remaining)
    for user in remaining:
        assert memory.forget(user, None, None).users == 1
    check(memory)
    live = memory.live
    shards = memory.index.shards
    pools = [memory.histories.baskets, memory.histories.items]
    for pool in pools + [shard.vectors for shard in shards] + [shard.postings for shard in shards]:
        assert not testing.rows(pool)["length"].any()
    for pool in (memory.histories.splices, live.items, live.gone, live.checkpoints.levels):
        assert (pool.residue(), pool.blocks.used) == (0, 0)
    assert not testing.popularity(memory.histories).any()
    assert not any(testing.norms(shard).any() or testing.members(shard).any() for shard in shards)
    assert not testing.slots(memory.index).any()
    assert not testing.population(memory.index).any()
    assert not testing.newest_checkpoints(live.checkpoints).any()
    hubs = testing.hubs(memory.index.hubs)
    assert not any(hubs[name].any() for name in ("members", "sums", "place"))
    assert not hubs["heap"]["item"].any()
    assert not hubs["heap"]["total"].any()
    assert memory.index.hubs.records == 0
    assert testing.is_clean(live.space)
    assert memory.users.sorted() == memory.items.sorted() == []
    assert len(memory.texts.codes) == 0


def sizes_in_the_hubs(memory: EngineState) -> list[int]:
    """How many items the members of the hubs have."""
    index = memory.index
    slots = testing.hubs(index.hubs)["members"][: index.hubs.member_count].tolist()
    return sorted(
        int(testing.rows(index.shards[slot // index.shard_size].vectors)["length"][slot % index.shard_size])
        for slot in slots
    )


def test_the_hubs_is_those_with_the_smallest_norms() -> None:
    memory = EngineState(Params(neighbors=4))
    for user, size in enumerate([5, 2, 9, 1, 7, 3, 8, 4]):
        memory.learn(user, list(range(size)), 0, None)
    memory.index.gather_hubs()
    assert sizes_in_the_hubs(memory) == [1, 2, 3, 4]
    check(memory)


def test_the_hubs_follows_event_by_event() -> None:
    """Those with large norms leave it, and others with small ones join, while it is exact all along."""
    memory = EngineState(Params(neighbors=4))
    for user in range(40):
        memory.learn(user, list(range(10 + user % 9)), 0, None)
    memory.index.gather_hubs()
    for user in range(100, 104):
        memory.learn(user, list(range(user - 99)), 0, None)
    for basket in range(30):
        memory.learn(0, list(range(20)), f"b{basket}", None)
        check(memory)
    assert sizes_in_the_hubs(memory) == [1, 2, 3, 4]


def test_an_event_looks_at_few_slots_for_the_hubs() -> None:
    """However many users could join at once, one does."""
    memory = EngineState(Params(neighbors=50))
    for user in range(60):
        memory.learn(user, [user % 9], 0, None)
    testing.dissolve(memory.index)
    for number in range(1, 30):
        memory.learn(0, [number % 9], f"b{number}", None)
        assert memory.index.hubs.member_count == number
        check(memory)


def test_a_slot_that_was_given_back_is_used_again() -> None:
    memory = EngineState(Params(neighbors=4))
    for user in range(9):
        memory.learn(user, [user, 1], 0, None)
    freed = [testing.where(memory.index, memory.users.codes[user]) for user in (7, 2)]
    for user in (7, 2):
        memory.forget(user, None, None)
        check(memory)
    for user in (100, 101):
        memory.learn(user, [5], 0, None)
        check(memory)
    assert [testing.where(memory.index, memory.users.codes[user]) for user in (101, 100)] == freed
    assert memory.index.slot_end == 9


def test_an_index_has_the_parts_that_it_needs(shard_size: int) -> None:
    memory = EngineState(Params(neighbors=4))
    assert memory.index.shards == []
    for user in range(9):
        memory.learn(user, [user, 1], 0, None)
    assert [shard.end for shard in memory.index.shards] == ([4, 4, 1] if shard_size == 4 else [9])


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
