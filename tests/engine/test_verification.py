"""A proof that can fail: each place where something of a user could stay is spoiled, and the proof must see it.

A shop of three, all of them in the hubs, in which ann's history is long enough for checkpoints. Whatever is forgotten of
ann, a spoiler puts something back or changes a fact right after the model was brought up to date, which is before
the receipt is written.
"""

import random
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import unbasket as ub
from unbasket.core.check import testing
from unbasket.core.index.live_index import LiveIndex
from unbasket.core.index.shard import Shard
from unbasket.domain.ids import FREE, Id
from unbasket.engine import verification
from unbasket.engine.digest import Digest
from unbasket.engine.inspector import InvariantChecker, Trace
from unbasket.engine.state import EngineState

Spoiler = Callable[[LiveIndex, int, int, int], None]  # of a user (a code), one of the user's items, and a magnitude

PARAMS = ub.Params(group_size=2, neighbors=5)
PART = 4
SCOPES: dict[str, dict[str, Any]] = {
    "user": {},
    "basket": {"basket": "two"},
    "item of a basket": {"basket": "six", "item": "milk"},
    "item": {"item": "milk"},
}
BASKETS: dict[str, dict[str, list[str]]] = {
    "ann": {
        "one": ["milk", "bread"],
        "two": ["tea"],
        "three": ["milk", "tea"],
        "four": ["bread", "milk"],
        "five": ["salt"],
        "six": ["milk", "salt"],
        "seven": ["tea", "milk"],
    },
    "bob": {"one": ["milk", "bread"], "two": ["tea"]},
    "cat": {"one": ["milk", "tea", "salt"]},
}


@pytest.fixture(autouse=True)
def short_histories_count_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.histories.CHECKPOINT_EVERY", 2)
    monkeypatch.setattr("unbasket.engine.histories.LONG", 3)
    monkeypatch.setattr("unbasket.engine.state.SHARD_SIZE", PART)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ub.DurableRecommender]:
    rows = [(user, b, item) for user, baskets in BASKETS.items() for b, items in baskets.items() for item in items]
    with ub.open(tmp_path / "shop.db", PARAMS) as rec:
        rec.fit(pl.DataFrame(rows, schema=["user", "basket", "item"], orient="row"))
        rec.learn("ann", ["salt"], basket="eight")
        assert rec.verify().ok
        yield rec


# Spoilers of the compiled core ----------------------------------------------------------------------------------


def a_basket(live: LiveIndex, user: int, item: int, _: int) -> None:
    testing.add_basket(live.histories, user, 7, item)


def an_item_of_no_basket(live: LiveIndex, user: int, item: int, _: int) -> None:
    testing.append(live.histories.items, user)
    testing.row(live.histories.items, user, testing.CODE)[-1] = item


def slot_of(live: LiveIndex, user: int) -> int:
    """The slot of a user, or the one that the user has given back: the only one that is not in use."""
    slot = int(testing.slots(live.index)[user]) - 1
    if slot >= 0:
        return slot
    return next(slot for slot in range(live.index.slot_end) if slot not in testing.slots(live.index) - 1)


def where(live: LiveIndex, user: int) -> tuple[Shard, int]:
    return live.index.shards[slot_of(live, user) // PART], slot_of(live, user) % PART


def an_entry_of_the_vector(live: LiveIndex, user: int, item: int, _: int) -> None:
    part, row = where(live, user)
    testing.append(part.vectors, row)
    testing.row(part.vectors, row, testing.ENTRY)[-1] = (item, 5, 0)


def an_entry_under_an_item(live: LiveIndex, user: int, item: int, _: int) -> None:
    part, row = where(live, user)
    testing.append(part.postings, item)
    testing.row(part.postings, item, testing.POSTING)[-1] = (row, 5)


def an_entry_that_was_another_users(live: LiveIndex, user: int, item: int, _: int) -> None:
    part, row = where(live, user)
    rows = testing.row(part.postings, item, testing.POSTING)["row"]
    rows[rows != row] = row


def a_slot(live: LiveIndex, user: int, *_: int) -> None:
    testing.slots(live.index)[user] = 2 if testing.slots(live.index)[user] != 2 else 3  # another's


def a_slot_that_there_is_not(live: LiveIndex, user: int, *_: int) -> None:
    testing.slots(live.index)[user] = 100


def an_owner(live: LiveIndex, user: int, *_: int) -> None:
    part, row = where(live, user)
    testing.owners(part)[row] ^= 1


def a_norm(live: LiveIndex, user: int, *_: int) -> None:
    part, row = where(live, user)
    testing.norms(part)[row] += 1


def a_count_of_a_magnitude(live: LiveIndex, _: int, __: int, level: int) -> None:
    testing.norm_histogram(live.index)[level] += 1


def a_number_of_a_member(live: LiveIndex, user: int, *_: int) -> None:
    part, row = where(live, user)
    testing.hub_numbers(part)[row] ^= 1


def a_member(live: LiveIndex, user: int, *_: int) -> None:
    testing.hubs(live.index.hubs)["slots"][:2] = slot_of(live, user)  # twice, or though not there any more


def a_sum_of_the_hubs(live: LiveIndex, _: int, item: int, __: int) -> None:
    testing.hubs(live.index.hubs)["sums"][item] += 5


def a_sum_in_the_hubss_heap(live: LiveIndex, _: int, item: int, __: int) -> None:
    hubs = testing.hubs(live.index.hubs)
    hubs["heap"]["total"][max(hubs["heap_position"][item], 1) - 1] += 5


def a_place_in_the_hubss_heap(live: LiveIndex, _: int, item: int, __: int) -> None:
    testing.hubs(live.index.hubs)["heap_position"][item] += 1


def the_order_of_the_hubss_heap(live: LiveIndex, *_: int) -> None:
    hubs = testing.hubs(live.index.hubs)
    hubs["heap"][:2] = hubs["heap"][:2][::-1].copy()
    hubs["heap_position"][hubs["heap"]["item"][:2]] = [1, 2]


def the_length_of_the_hubs(live: LiveIndex, *_: int) -> None:
    live.index.hubs.entry_count += 1


def a_mark(live: LiveIndex, user: int, *_: int) -> None:
    testing.add_mark(live, user, 3, 3, 1)


def a_count_of_an_item(live: LiveIndex, _: int, item: int, __: int) -> None:
    testing.popularity(live.histories)[item] += 1


SPOILERS: list[Spoiler] = [
    a_basket,
    an_item_of_no_basket,
    an_entry_of_the_vector,
    an_entry_under_an_item,
    an_entry_that_was_another_users,
    a_slot,
    a_slot_that_there_is_not,
    an_owner,
    a_norm,
    a_count_of_a_magnitude,
    a_number_of_a_member,
    a_member,
    a_sum_of_the_hubs,
    a_sum_in_the_hubss_heap,
    a_place_in_the_hubss_heap,
    the_order_of_the_hubss_heap,
    the_length_of_the_hubs,
    a_mark,
    a_count_of_an_item,
]


def forget_spoiled(
    rec: ub.DurableRecommender, scope: str, patch: pytest.MonkeyPatch, spoil: Callable[[Trace], object]
) -> ub.Receipt:
    """Forget something of ann, and spoil it before anybody looks."""
    trace = InvariantChecker(rec._state).trace("ann")
    assert trace is not None
    forget = EngineState.forget

    def spoiled(memory: EngineState, user: Id, basket: Id | None, item: Id | None) -> ub.Forgotten:
        forgotten = forget(memory, user, basket, item)
        spoil(trace)
        return forgotten

    patch.setattr(EngineState, "forget", spoiled)
    rec.forget("ann", **SCOPES[scope])
    [receipt] = rec.receipts()
    assert receipt.scope == scope
    return receipt


@pytest.mark.parametrize("scope", SCOPES)
def test_what_is_not_spoiled_is_verified(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    assert forget_spoiled(shop, scope, monkeypatch, lambda _: None).verified
    assert shop.verify().ok
    assert shop.verify("ann") == ub.Verification(ok=True, users=int(scope != "user"), mismatches=())


@pytest.mark.parametrize("item", ["milk", "salt"])
@pytest.mark.parametrize("spoiler", SPOILERS, ids=lambda spoiler: spoiler.__name__)
@pytest.mark.parametrize("scope", SCOPES)
def test_no_place_is_overlooked(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str, spoiler: Spoiler, item: str
) -> None:
    code = shop._state.items.codes[item]
    receipt = forget_spoiled(
        shop, scope, monkeypatch, lambda trace: spoiler(shop._state.live, trace.owner, code, trace.level)
    )
    assert not receipt.verified
    assert not shop.verify().ok
    assert not shop.verify("ann").ok


def spoil_levels(live: LiveIndex) -> None:
    """Change the state that every checkpoint has saved."""
    for checkpoint in range(live.checkpoints.size):
        testing.row(live.checkpoints.levels, checkpoint, testing.LEVEL)["value"] *= 1.5


def spoil_mark(live: LiveIndex) -> None:
    """Let a user's newest checkpoint lie elsewhere."""
    testing.checkpoints(live.checkpoints)["groups"][testing.newest_marks(live.checkpoints)[0]] += 1


@pytest.mark.parametrize("spoil", [spoil_levels, spoil_mark])
def test_marks_that_remain_are_looked_at(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[LiveIndex], None]
) -> None:
    assert shop._state.users.codes["ann"] == 0
    receipt = forget_spoiled(shop, "item of a basket", monkeypatch, lambda _: spoil(shop._state.live))
    assert not receipt.verified
    assert shop.verify("ann").mismatches == ("the checkpoints of user 'ann'",)
    assert shop.verify().mismatches == ("the checkpoints of user 'ann'",)


# Spoilers of ids and of the digest ------------------------------------------------------------------------------


def test_a_name_that_stays_in_the_order_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = forget_spoiled(shop, "user", monkeypatch, lambda _: shop._state.users._texts.add("ann"))
    assert not receipt.verified
    assert shop.verify("ann").mismatches == ("the id of user 'ann'",)
    assert shop.verify().mismatches == ("the ids",)
    assert shop.verify("zoe").ok


def test_a_name_that_keeps_its_code_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    users = shop._state.users
    with monkeypatch.context() as patch:
        patch.setattr(users, "remove", lambda _: None)
        assert not forget_spoiled(shop, "user", patch, lambda _: None).verified
    assert not shop.verify().ok


@pytest.mark.parametrize("scope", ["user", "basket"])
def test_a_basket_id_that_stays_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str) -> None:
    monkeypatch.setattr(EngineState, "_drop_basket", lambda *_: None)
    if scope == "user":
        monkeypatch.setattr(shop._state, "long_histories", Undroppable(shop._state.long_histories))
    assert not forget_spoiled(shop, scope, monkeypatch, lambda _: None).verified
    assert "the ids" in " ".join(shop.verify().mismatches)


class Undroppable(dict[int, set[Any]]):
    def pop(self, *_: object) -> None:  # type: ignore[override]
        pass


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("part", ["sum", "hash", "both"])
def test_the_digest_is_looked_at(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str, part: str
) -> None:
    """As if the old hash stayed in the sum, a hash stayed in the table, or the digest were not told."""
    value = Digest.value
    spoiled: list[int] = []

    def wrong(digest: Digest) -> str:
        text = value(digest)
        if len(spoiled) == 1:  # of the two digests of a receipt, the second
            if part == "sum":
                digest._sum += 1
            elif part == "hash":
                digest._hashes[0, 0] ^= 1
                digest._sum = (digest._sum + (-1 if digest._hashes[0, 0] & 1 == 0 else 1) * 2**248) % 2**256
        spoiled.append(1)
        return text

    if part == "both":
        monkeypatch.setattr(Digest, "wipe", lambda *_: None)
    else:
        monkeypatch.setattr(Digest, "value", wrong)
    assert not forget_spoiled(shop, scope, monkeypatch, lambda _: None).verified
    monkeypatch.setattr(Digest, "value", value)
    assert any(what.startswith("the digest") for what in shop.verify().mismatches)
    assert any(what.startswith("the digest") for what in shop.verify("ann").mismatches)


# Nobody ---------------------------------------------------------------------------------------------------------


def test_a_forget_of_nobody_is_verified_unless_there_is_a_trace(shop: ub.DurableRecommender) -> None:
    shop.forget("zoe")
    shop._state.users._texts.add("zoe")
    shop.forget("zoe")
    assert [receipt.verified for receipt in shop.receipts()] == [True, False]


def test_a_forget_that_forgets_nothing_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EngineState, "forget", lambda *_: ub.Forgotten(0, 0, 0))
    for scope in SCOPES.values():
        shop.forget("ann", **scope)
    assert [receipt.verified for receipt in shop.receipts()] == [False] * 4


def a_byte_of_a_free_block(live: LiveIndex, _: int) -> None:
    testing.free_block(live.index.shards[0].vectors, 3 * testing.ENTRY.itemsize)[5] = 1


def a_byte_behind_a_vector(live: LiveIndex, user: int) -> None:
    part, row = where(live, user)
    part.vectors.reserve(row, 2 * testing.rows(part.vectors)["capacity"][row])
    testing.spare(part.vectors, row)[-1] = 1


@pytest.mark.parametrize("litter", [a_byte_of_a_free_block, a_byte_behind_a_vector])
def test_what_is_not_wiped_shows(shop: ub.DurableRecommender, litter: Callable[[LiveIndex, int], None]) -> None:
    shop.forget("cat")
    litter(shop._state.live, shop._state.users.codes["ann"])
    assert shop.verify().mismatches == ("something that belongs to nobody in the places that were left",)
    assert shop.verify("cat").mismatches == ("something that belongs to nobody in the places that were left",)


def test_an_entry_of_nobody_shows_whoever_is_asked_for(shop: ub.DurableRecommender) -> None:
    code = shop._state.users.codes["cat"]
    shop.forget("cat")
    assert shop._state.users.names[code] == FREE
    an_entry_under_an_item(shop._state.live, code, shop._state.items.codes["tea"], 0)
    wrong = ("the entries under items", "something that belongs to nobody in the entries under items")
    assert shop.verify("cat") == shop.verify("zoe") == ub.Verification(False, 0, wrong)
    assert shop.verify("ann") == ub.Verification(False, 1, wrong)


# Beside writers -------------------------------------------------------------------------------------------------


def verified(rec: ub.Recommender, events: list[Callable[[], object]]) -> ub.Verification:
    """All users are compared, one at a time, and an event happens after each."""
    everybody = verification.FullVerification(rec._model.state, rec._model.digest)
    while everybody.advance():
        if events:
            events.pop(0)()
    everybody.stop()
    assert not events
    return everybody.report()


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_PIECE", 1)


@pytest.mark.usefixtures("one_at_a_time")
def test_others_learn_and_forget_while_all_users_are_compared(shop: ub.DurableRecommender) -> None:
    events: list[Callable[[], object]] = [
        lambda: shop.learn("ann", ["tea"], basket="new"),  # looked at already
        lambda: shop.forget("bob", basket="two"),
        lambda: shop.learn("new", ["tea", "new"], basket=1),
        lambda: shop.forget("ann"),
    ]
    assert verified(shop, events) == ub.Verification(ok=True, users=3, mismatches=())


def test_others_learn_and_forget_while_what_users_share_is_looked_at() -> None:
    """In a shop that is too large for one look, by pieces: after each of them, baskets and users come and go."""
    chance = random.Random(0)
    rows = [(user, basket, chance.randrange(500)) for user in range(3000) for basket in range(3) for _ in range(20)]
    rec = ub.Recommender(PARAMS).fit(pl.DataFrame(rows, schema=["user", "basket", "item"], orient="row"))
    rec.digest()
    inspector, pieces = InvariantChecker(rec._model.state), 0
    looks = verification._looks_at_shared(inspector, rec._model.digest)
    shared = verification.Shared(chain(looks, inspector.id_faults()))
    while shared.advance():
        pieces += 1
        for _ in range(30):
            rec.learn(chance.randrange(4000), [chance.randrange(600) for _ in range(9)], basket=chance.randrange(9))
            rec.forget(chance.randrange(4000))
        rec.digest()
    assert shared.report() == []
    assert pieces > 3000 // PART  # one for each part, and more
    assert rec.verify(1).ok


@pytest.mark.usefixtures("one_at_a_time")
def test_who_changes_after_they_were_compared_is_compared_again(shop: ub.DurableRecommender) -> None:
    memory = shop._model.state
    first = memory.users.names[0]

    def learn_and_spoil() -> None:
        shop.learn(first, ["tea"], basket="new")
        testing.row(memory.histories.items, 0, testing.CODE)[-1] ^= 1

    report = verified(shop, [learn_and_spoil])
    assert f"the vector of user {first!r}" in report.mismatches
    assert not verified(shop, [lambda: None]).ok


@pytest.mark.usefixtures("one_at_a_time")
def test_a_user_who_is_forgotten_meanwhile_has_nothing_wrong(shop: ub.DurableRecommender) -> None:
    memory = shop._model.state
    first = memory.users.names[0]
    kept = testing.row(memory.histories.items, 0, testing.CODE).copy()
    testing.row(memory.histories.items, 0, testing.CODE)[0] ^= 1

    def mend_and_forget() -> None:
        testing.row(memory.histories.items, 0, testing.CODE)[:] = kept
        shop.forget(first)

    assert verified(shop, [mend_and_forget]) == ub.Verification(ok=True, users=2, mismatches=())


def test_nobody_is_watched_after_a_verification(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.verify().ok
    monkeypatch.setattr(verification.FullVerification, "report", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shop.verify()
    assert shop._model.digest._watching == []


def test_an_item_that_nobody_has_shows(shop: ub.DurableRecommender) -> None:
    shop._model.state.items.add("nobody's")
    shop._model.state._admit()
    assert shop.verify().mismatches == ("the ids",)


def test_ids_may_be_as_far_apart_as_numbers_are() -> None:
    rec = ub.Recommender()
    rec.learn(-(2**63), [-(2**63), 0, 2**63 - 1, "x"], basket=1)
    rec.learn(2**63 - 1, [5], basket=-(2**63))
    assert rec.verify() == (True, 2, ())
