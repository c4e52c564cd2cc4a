"""Invariants that can fail: each structure where a user's data could stay is spoiled, and the check must see it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engine.spoiled_forgets import SCOPES, SHARD_SIZE, forget_spoiled, open_shop, shrink_limits

import unbasket as ub
from unbasket.core.check import testing
from unbasket.core.index import LiveIndex, Shard
from unbasket.domain.ids import FREE

Spoiler = Callable[[LiveIndex, int, int, int], None]  # user, item, bin of the norm histogram


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ub.DurableRecommender]:
    shrink_limits(monkeypatch)
    yield from open_shop(tmp_path)


def a_basket(live: LiveIndex, user: int, item: int, _: int) -> None:
    testing.add_basket(live.histories, user, 7, item)


def an_item_of_no_basket(live: LiveIndex, user: int, item: int, _: int) -> None:
    testing.append(live.histories.items, user)
    testing.row(live.histories.items, user, testing.CODE)[-1] = item


def slot_of(live: LiveIndex, user: int) -> int:
    """Return the slot of a user, or the one that the user had: the only free one."""
    slot = int(testing.slots(live.index)[user]) - 1
    if slot >= 0:
        return slot
    return next(slot for slot in range(live.index.slot_end) if slot not in testing.slots(live.index) - 1)


def where(live: LiveIndex, user: int) -> tuple[Shard, int]:
    return live.index.shards[slot_of(live, user) // SHARD_SIZE], slot_of(live, user) % SHARD_SIZE


def a_vector_entry(live: LiveIndex, user: int, item: int, _: int) -> None:
    shard, row = where(live, user)
    testing.append(shard.vectors, row)
    testing.row(shard.vectors, row, testing.ENTRY)[-1] = (item, 5, 0)


def a_posting(live: LiveIndex, user: int, item: int, _: int) -> None:
    shard, row = where(live, user)
    testing.append(shard.postings, item)
    testing.row(shard.postings, item, testing.POSTING)[-1] = (row, 5)


def a_posting_of_another_user(live: LiveIndex, user: int, item: int, _: int) -> None:
    shard, row = where(live, user)
    rows = testing.row(shard.postings, item, testing.POSTING)["row"]
    rows[rows != row] = row


def a_slot(live: LiveIndex, user: int, *_: int) -> None:
    testing.slots(live.index)[user] = 2 if testing.slots(live.index)[user] != 2 else 3  # another's


def a_slot_that_does_not_exist(live: LiveIndex, user: int, *_: int) -> None:
    testing.slots(live.index)[user] = 100


def an_owner(live: LiveIndex, user: int, *_: int) -> None:
    shard, row = where(live, user)
    testing.owners(shard)[row] ^= 1


def a_norm(live: LiveIndex, user: int, *_: int) -> None:
    shard, row = where(live, user)
    testing.norms(shard)[row] += 1


def a_bin_of_the_norm_histogram(live: LiveIndex, _: int, __: int, norm_bin: int) -> None:
    testing.norm_histogram(live.index)[norm_bin] += 1


def an_index_of_a_hub(live: LiveIndex, user: int, *_: int) -> None:
    shard, row = where(live, user)
    testing.hub_numbers(shard)[row] ^= 1


def a_hub(live: LiveIndex, user: int, *_: int) -> None:
    testing.hubs(live.index.hubs)["slots"][:2] = slot_of(live, user)  # twice, or though the user is gone


def a_sum_of_the_hubs(live: LiveIndex, _: int, item: int, __: int) -> None:
    testing.hubs(live.index.hubs)["sums"][item] += 5


def a_sum_in_the_hubs_heap(live: LiveIndex, _: int, item: int, __: int) -> None:
    hubs = testing.hubs(live.index.hubs)
    hubs["heap"]["total"][max(hubs["heap_position"][item], 1) - 1] += 5


def a_position_in_the_hubs_heap(live: LiveIndex, _: int, item: int, __: int) -> None:
    testing.hubs(live.index.hubs)["heap_position"][item] += 1


def the_order_of_the_hubs_heap(live: LiveIndex, *_: int) -> None:
    hubs = testing.hubs(live.index.hubs)
    hubs["heap"][:2] = hubs["heap"][:2][::-1].copy()
    hubs["heap_position"][hubs["heap"]["item"][:2]] = [1, 2]


def the_number_of_hub_entries(live: LiveIndex, *_: int) -> None:
    live.index.hubs.entry_count += 1


def a_checkpoint(live: LiveIndex, user: int, *_: int) -> None:
    testing.add_checkpoint(live, user, 3, 3, 1)


def an_item_count(live: LiveIndex, _: int, item: int, __: int) -> None:
    testing.popularity(live.histories)[item] += 1


SPOILERS: list[Spoiler] = [
    a_basket,
    an_item_of_no_basket,
    a_vector_entry,
    a_posting,
    a_posting_of_another_user,
    a_slot,
    a_slot_that_does_not_exist,
    an_owner,
    a_norm,
    a_bin_of_the_norm_histogram,
    an_index_of_a_hub,
    a_hub,
    a_sum_of_the_hubs,
    a_sum_in_the_hubs_heap,
    a_position_in_the_hubs_heap,
    the_order_of_the_hubs_heap,
    the_number_of_hub_entries,
    a_checkpoint,
    an_item_count,
]


@pytest.mark.parametrize("item", ["milk", "salt"])
@pytest.mark.parametrize("spoiler", SPOILERS, ids=lambda spoiler: spoiler.__name__)
@pytest.mark.parametrize("scope", SCOPES)
def test_every_structure_is_checked(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str, spoiler: Spoiler, item: str
) -> None:
    code = shop._state.items.codes[item]
    receipt = forget_spoiled(
        shop, scope, monkeypatch, lambda trace: spoiler(shop._state.live, trace.code, code, trace.norm_bin)
    )
    assert not receipt.verified
    assert not shop.verify().ok
    assert not shop.verify("ann").ok


def spoil_levels(live: LiveIndex) -> None:
    """Change the saved state of every checkpoint."""
    for checkpoint in range(live.checkpoints.size):
        testing.row(live.checkpoints.levels, checkpoint, testing.LEVEL)["value"] *= 1.5


def spoil_checkpoint(live: LiveIndex) -> None:
    """Move a user's newest checkpoint."""
    testing.checkpoints(live.checkpoints)["groups"][testing.newest_checkpoints(live.checkpoints)[0]] += 1


@pytest.mark.parametrize("spoil", [spoil_levels, spoil_checkpoint])
def test_remaining_checkpoints_are_checked(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[LiveIndex], None]
) -> None:
    assert shop._state.users.codes["ann"] == 0
    receipt = forget_spoiled(shop, "item of a basket", monkeypatch, lambda _: spoil(shop._state.live))
    assert not receipt.verified
    assert shop.verify("ann").mismatches == ("the checkpoints of user 'ann'",)
    assert shop.verify().mismatches == ("the checkpoints of user 'ann'",)


def a_byte_of_a_free_block(live: LiveIndex, _: int) -> None:
    testing.free_block(live.index.shards[0].vectors, 3 * testing.ENTRY.itemsize)[5] = 1


def a_byte_behind_a_vector(live: LiveIndex, user: int) -> None:
    shard, row = where(live, user)
    shard.vectors.reserve(row, 2 * testing.rows(shard.vectors)["capacity"][row])
    testing.spare(shard.vectors, row)[-1] = 1


@pytest.mark.parametrize("leave_residue", [a_byte_of_a_free_block, a_byte_behind_a_vector])
def test_residue_is_found(shop: ub.DurableRecommender, leave_residue: Callable[[LiveIndex, int], None]) -> None:
    shop.forget("cat")
    leave_residue(shop._state.live, shop._state.users.codes["ann"])
    assert shop.verify().mismatches == ("residue in freed memory",)
    assert shop.verify("cat").mismatches == ("residue in freed memory",)


def test_an_orphaned_posting_is_found_whatever_user_is_verified(shop: ub.DurableRecommender) -> None:
    code = shop._state.users.codes["cat"]
    shop.forget("cat")
    assert shop._state.users.names[code] == FREE
    a_posting(shop._state.live, code, shop._state.items.codes["tea"], 0)
    wrong = ("the postings", "an orphaned record in the postings")
    assert shop.verify("cat") == shop.verify("zoe") == ub.Verification(False, 0, wrong)
    assert shop.verify("ann") == ub.Verification(False, 1, wrong)
