"""The index with its shards and hubs, array by array, after random events: nothing wrong, no residue.

One file for shard, index, hubs and live_index: every test checks all of their arrays against each other.
"""

import random
from itertools import chain
from typing import Any

import numpy as np
import pytest

from unbasket.core.check import testing
from unbasket.core.check.testing import BASKET, CODE, ENTRY, POSTING, norm_bin, norm_bin_end
from unbasket.core.memory import JaggedArray
from unbasket.engine.state import EngineState
from unbasket.engine.verification import InvariantChecker
from unbasket.params import Grouping, Params

GROUPINGS: list[Grouping] = ["fixed", "varying"]
Vectors = dict[int, list[tuple[int, int, int]]]  # by slot


@pytest.fixture(autouse=True, params=[4, 64], ids=["shards of 4", "shards of 64"])
def shard_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run every test with users in many shards, and in one."""
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", request.param)
    return int(request.param)


def rows_of(rows: JaggedArray, record: np.dtype[Any]) -> list[list[Any]]:
    """Return the records of each row; fail if anything else in their memory is not zero."""
    assert rows.residue() == 0
    return [testing.row(rows, row, record).tolist() for row in range(rows.count)]


def check_histories(state: EngineState) -> None:
    baskets, items = rows_of(state.histories.baskets, BASKET), rows_of(state.histories.items, CODE)
    users = set(state.users.codes.values())
    assert {code for code, row in enumerate(baskets) if row} == users
    assert {code for code, row in enumerate(items) if row} == users
    for code in users:
        assert sum(size for _, _, size, _ in baskets[code]) == len(items[code])
    bought = [item for row in items for item in row]
    counts = testing.popularity(state.histories)
    assert counts.tolist() == np.bincount(np.array(bought, np.int64), minlength=len(counts)).tolist()
    assert set(bought) == set(state.items.codes.values())


def check_vectors(state: EngineState) -> Vectors:
    """Check that vectors and postings of each shard have the same entries, and point at each other."""
    index, found = state.index, {}
    for number, shard in enumerate(index.shards):
        vectors, postings = rows_of(shard.vectors, ENTRY), rows_of(shard.postings, POSTING)
        entries = {(row, item, weight) for row, vector in enumerate(vectors) for item, weight, _ in vector}
        posted = {(row, item, weight) for item, record in enumerate(postings) for row, weight in record}
        assert entries == posted
        assert len(entries) == sum(map(len, vectors)) == sum(map(len, postings))
        assert all(weight > 0 for _, _, weight in entries)
        for row, vector in enumerate(vectors):
            assert all(postings[item][posting][0] == row for item, _, posting in vector)
        assert not any(vectors[shard.end :])
        found.update({number * index.shard_size + row: vector for row, vector in enumerate(vectors[: shard.end])})
    return found


def check_slots(state: EngineState, vectors: Vectors) -> None:
    """Check that every user has a slot with a vector; the other slots are empty, and chained."""
    index = state.index
    slots = (
        {code: slot - 1 for code, slot in enumerate(testing.slots(index).tolist()) if slot} if state.users.names else {}
    )
    assert set(slots) == set(state.users.codes.values())
    owners = [owner for shard in index.shards for owner in testing.owners(shard).tolist()]
    assert len(owners) == index.slot_end == len(vectors)
    assert {slot: owners[slot] for slot in slots.values()} == {slot: code for code, slot in slots.items()}
    assert {slot for slot, vector in vectors.items() if vector} == set(slots.values())
    unused = sorted(owners[slot] for slot in vectors if slot not in set(slots.values()))
    others = {slot + 1 for slot in vectors} - {slot + 1 for slot in slots.values()}
    assert len(others - set(unused)) == min(1, len(others))  # each but the first is the next of another


def check_norms(state: EngineState, vectors: Vectors) -> None:
    norms = [norm for shard in state.index.shards for norm in testing.norms(shard).tolist()]
    assert norms == [sum(weight**2 for _, weight, _ in vectors[slot]) for slot in range(len(norms))]
    histogram = testing.norm_histogram(state.index)
    bins = np.array([norm_bin(norm) for norm in norms if norm], np.int64)
    assert histogram.tolist() == np.bincount(bins, minlength=len(histogram)).tolist()


def check_hubs(state: EngineState, vectors: Vectors) -> None:
    hubs, arrays = state.index.hubs, testing.hubs(state.index.hubs)
    slots, heap, sums = arrays["slots"], arrays["heap"], arrays["sums"]
    numbers = [number for shard in state.index.shards for number in testing.hub_numbers(shard).tolist()]
    assert {slot: number for slot, number in enumerate(numbers) if number} == {
        slot: number for number, slot in enumerate(slots[: hubs.hub_count].tolist(), 1)
    }
    assert hubs.hub_count <= state.params.neighbors
    expected = np.zeros(len(sums), np.int64)
    scales = [scale for shard in state.index.shards for scale in testing.scales(shard).tolist()]
    for slot in slots[: hubs.hub_count].tolist():
        assert vectors[slot]
        for item, weight, _ in vectors[slot]:
            expected[item] += weight * scales[slot] >> 16
    assert sums.tolist() == expected.tolist()
    assert hubs.entry_count == sum(len(vectors[slot]) for slot in slots[: hubs.hub_count].tolist())
    items, totals = heap["item"][: hubs.item_count], heap["total"][: hubs.item_count].tolist()
    assert sorted(items.tolist()) == np.flatnonzero(sums).tolist()
    assert totals == sums[items].tolist()
    assert all(totals[(position - 1) // 2] >= total for position, total in enumerate(totals) if position)
    assert arrays["heap_position"][items].tolist() == list(range(1, hubs.item_count + 1))
    assert np.count_nonzero(arrays["heap_position"]) == hubs.item_count
    assert not slots[hubs.hub_count :].any()
    assert not heap["item"][hubs.item_count :].any()
    assert not heap["total"][hubs.item_count :].any()
    assert [*chain.from_iterable(InvariantChecker(state).shared_faults())] == []


def check(state: EngineState) -> None:
    check_histories(state)
    vectors = check_vectors(state)
    check_slots(state, vectors)
    check_norms(state, vectors)
    check_hubs(state, vectors)


def random_event(state: EngineState, chance: random.Random, users: int, items: int, growth: float) -> None:
    user, basket = chance.randrange(2 * users), f"b{chance.randrange(12)}"
    item = chance.randrange(items)
    if chance.random() < growth:
        bought: list[Any] = chance.sample(range(items), chance.randint(1, min(items, 8)))
        state.learn(user, bought, basket, chance.choice([None, chance.randrange(5)]))
        return
    forms = [(None, None), (basket, None), (basket, item), (None, item)]
    state.forget(user, *chance.choices(forms, [1, 4, 4, 4])[0])


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("neighbors", [3, 50])
@pytest.mark.parametrize("seed", range(3))
def test_random_events(grouping: Grouping, neighbors: int, seed: int) -> None:
    chance = random.Random(seed)
    state = EngineState(Params(group_size=2, neighbors=neighbors, grouping=grouping, alpha=0.8))
    for step in range(600):
        growth = 0.7 if step < 300 else 0.2
        random_event(state, chance, users=15, items=12, growth=growth)
        if step % 10 == 0:
            check(state)
        if step % 97 == 0:
            state.index.rebuild_hubs()
            check(state)


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("seed", range(3))
def test_loading_known_and_new_users(grouping: Grouping, seed: int) -> None:
    chance = random.Random(seed)
    params = Params(group_size=2, neighbors=5, grouping=grouping, alpha=0.8)
    source, target = EngineState(params), EngineState(params)
    for _ in range(200):
        random_event(source, chance, users=30, items=40, growth=0.9)
        random_event(target, chance, users=10, items=20, growth=0.7)
    target.load(source.columns(source.users.sorted()))
    check(target)
    assert set(source.users.codes) <= set(target.users.codes)
    for user in source.users.sorted():
        target.forget(user, None, None)
    check(target)


@pytest.mark.parametrize("seed", range(3))
def test_after_forgetting_all_users_everything_is_zero(seed: int) -> None:
    chance = random.Random(seed)
    state = EngineState(Params(group_size=2, neighbors=5, alpha=0.8))
    for _ in range(200):
        random_event(state, chance, users=30, items=40, growth=0.9)
    state.index.rebuild_hubs()
    remaining = state.users.sorted()
    chance.shuffle(remaining)
    for user in remaining:
        assert state.forget(user, None, None).users == 1
    check(state)
    live = state.live
    shards = state.index.shards
    arrays = [state.histories.baskets, state.histories.items]
    for array in arrays + [shard.vectors for shard in shards] + [shard.postings for shard in shards]:
        assert not testing.rows(array)["length"].any()
    for array in (state.histories.splices, live.items, live.removed, live.checkpoints.levels):
        assert (array.residue(), array.blocks.used) == (0, 0)
    assert not testing.popularity(state.histories).any()
    assert not any(testing.norms(shard).any() or testing.hub_numbers(shard).any() for shard in shards)
    assert not testing.slots(state.index).any()
    assert not testing.norm_histogram(state.index).any()
    assert not testing.newest_checkpoints(live.checkpoints).any()
    hubs = testing.hubs(state.index.hubs)
    assert not any(hubs[name].any() for name in ("slots", "sums", "heap_position"))
    assert not hubs["heap"]["item"].any()
    assert not hubs["heap"]["total"].any()
    assert state.index.hubs.entry_count == 0
    assert testing.is_clean(live.space)
    assert state.users.sorted() == state.items.sorted() == []
    assert state.baskets.names is None


def sizes_of_hubs(state: EngineState) -> list[int]:
    """Return the number of items of each hub."""
    index = state.index
    slots = testing.hubs(index.hubs)["slots"][: index.hubs.hub_count].tolist()
    return sorted(
        int(testing.rows(index.shards[slot // index.shard_size].vectors)["length"][slot % index.shard_size])
        for slot in slots
    )


def test_hubs_are_the_users_with_the_smallest_norms() -> None:
    state = EngineState(Params(neighbors=4))
    for user, size in enumerate([5, 2, 9, 1, 7, 3, 8, 4]):
        state.learn(user, list(range(size)), 0, None)
    state.index.rebuild_hubs()
    assert sizes_of_hubs(state) == [1, 2, 3, 4]
    check(state)


def test_hubs_are_updated_event_by_event() -> None:
    """Users with large norms are replaced by users with small ones, and the sums are exact all along."""
    state = EngineState(Params(neighbors=4))
    for user in range(40):
        state.learn(user, list(range(10 + user % 9)), 0, None)
    state.index.rebuild_hubs()
    for user in range(100, 104):
        state.learn(user, list(range(user - 99)), 0, None)
    for basket in range(30):
        state.learn(0, list(range(20)), 1 + basket, None)
        check(state)
    assert sizes_of_hubs(state) == [1, 2, 3, 4]


def test_an_event_looks_at_few_slots_for_the_hubs() -> None:
    """However many users could become hubs, an event adds one."""
    state = EngineState(Params(neighbors=50))
    for user in range(60):
        state.learn(user, [user % 9], 0, None)
    testing.dissolve(state.index)
    for number in range(1, 30):
        state.learn(0, [number % 9], 1 + number, None)
        assert state.index.hubs.hub_count == number
        check(state)


def test_a_slot_that_was_given_back_is_used_again() -> None:
    state = EngineState(Params(neighbors=4))
    for user in range(9):
        state.learn(user, [user, 1], 0, None)
    freed = [testing.where(state.index, state.users.codes[user]) for user in (7, 2)]
    for user in (7, 2):
        state.forget(user, None, None)
        check(state)
    for user in (100, 101):
        state.learn(user, [5], 0, None)
        check(state)
    assert [testing.where(state.index, state.users.codes[user]) for user in (101, 100)] == freed
    assert state.index.slot_end == 9


def test_an_index_has_the_shards_that_it_needs(shard_size: int) -> None:
    state = EngineState(Params(neighbors=4))
    assert state.index.shards == []
    for user in range(9):
        state.learn(user, [user, 1], 0, None)
    assert [shard.end for shard in state.index.shards] == ([4, 4, 1] if shard_size == 4 else [9])


@pytest.mark.parametrize("norm", [32, 33, 63, 1000, 2**24, 2**48 - 1, 2**48, 3**30, 2**53 - 1])
def test_a_norm_bin_ends_where_the_next_begins(norm: int) -> None:
    bin_ = norm_bin(norm)
    assert norm_bin_end(bin_ - 1) <= norm < norm_bin_end(bin_)
    assert norm_bin(norm_bin_end(bin_)) == bin_ + 1
    assert norm_bin(norm_bin_end(bin_) - 1) == bin_


@pytest.mark.parametrize("norm", [*range(1, 70), 2**53 + 1, 2**61 - 1, 2**61 + 2**56 - 1, 2**62 - 1])
def test_every_norm_is_below_the_end_of_its_bin(norm: int) -> None:
    """A search relies on this limit, also where bins are finer than integers, or floats are coarser."""
    assert norm < norm_bin_end(norm_bin(norm))


def test_norm_bins_rise_with_norms() -> None:
    bins = [norm_bin(norm) for norm in [*range(1, 500), *(2**i + d for i in range(10, 62) for d in (-1, 0, 1))]]
    assert bins == sorted(bins)
    assert len(set(bins)) > 200
