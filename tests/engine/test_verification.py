"""Proofs that can fail: ids and the digest are spoiled, and verification must see it; and verification beside writers.

The spoilers of the compiled core are in core/check/test_invariants.py.
"""

import random
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.spoiled_forgets import PARAMS, SCOPES, SHARD_SIZE, forget_spoiled, open_shop, shrink_limits

import unbasket as ub
from unbasket.core.check import testing
from unbasket.engine import verification
from unbasket.engine.digest import Digest
from unbasket.engine.state import EngineState
from unbasket.engine.verification import InvariantChecker


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_limits(monkeypatch)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ub.DurableRecommender]:
    yield from open_shop(tmp_path)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_forget_without_spoiler_is_verified(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    assert forget_spoiled(shop, scope, monkeypatch, lambda _: None).verified
    assert shop.verify().ok
    assert shop.verify("ann") == ub.Verification(ok=True, users=int(scope != "user"), mismatches=())


# Spoilers of ids and of the digest ----------------------------------------------------------------------------------


def test_an_id_that_stays_in_the_order_is_found(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = forget_spoiled(shop, "user", monkeypatch, lambda _: shop._state.users._labeled.add("ann"))
    assert not receipt.verified
    assert shop.verify("ann").mismatches == ("the id of user 'ann'",)
    assert shop.verify().mismatches == ("the ids",)
    assert shop.verify("zoe").ok


def test_an_id_that_keeps_its_code_is_found(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    users = shop._state.users
    with monkeypatch.context() as patch:
        patch.setattr(users, "remove", lambda _: None)
        assert not forget_spoiled(shop, "user", patch, lambda _: None).verified
    assert not shop.verify().ok


@pytest.mark.parametrize("scope", ["user", "basket"])
def test_a_basket_id_that_stays_is_found(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    monkeypatch.setattr(EngineState, "_drop_basket", lambda *_: None)
    if scope == "user":
        monkeypatch.setattr(shop._state, "long_histories", Undroppable(shop._state.long_histories))
    assert not forget_spoiled(shop, scope, monkeypatch, lambda _: None).verified
    assert "the ids" in " ".join(shop.verify().mismatches)


class Undroppable(dict[int, set[Any]]):
    def pop(self, *_: object) -> None:  # type: ignore[override]
        pass


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("part", ["params", "entry", "both"])
def test_the_digest_is_checked(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str, part: str
) -> None:
    """As if the digest had other parameters, or a wrong entry in its tree, or did not follow."""
    value = Digest.value
    spoiled: list[int] = []

    def wrong(digest: Digest) -> str:
        text = value(digest)
        if len(spoiled) == 1:  # of the two digests of a receipt, the second
            if part == "params":
                digest._params = bytes(32)
            elif part == "entry":
                digest._tree.put_users([0], *np.full((2, 1, 32), 7, np.uint8))
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


# Unknown users, and forgets of nothing ------------------------------------------------------------------------------


def test_a_forget_of_an_unknown_user_is_verified_unless_there_is_a_trace(shop: ub.DurableRecommender) -> None:
    shop.forget("zoe")
    shop._state.users._labeled.add("zoe")
    shop.forget("zoe")
    assert [receipt.verified for receipt in shop.receipts()] == [True, False]


def test_a_forget_that_forgets_nothing_is_found(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EngineState, "forget", lambda *_: ub.Forgotten(0, 0, 0))
    for scope in SCOPES.values():
        shop.forget("ann", **scope)
    assert [receipt.verified for receipt in shop.receipts()] == [False] * 4


# Beside writers -----------------------------------------------------------------------------------------------------


def verified(rec: ub.Recommender, events: list[Callable[[], object]]) -> ub.Verification:
    """Verify all users, one per step, with an event after each step."""
    full = verification.FullVerification(rec._model.state, rec._model.digest)
    while full.advance():
        if events:
            events.pop(0)()
    full.stop()
    assert not events
    return full.report()


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_STEP", 1)


@pytest.mark.usefixtures("one_at_a_time")
def test_others_learn_and_forget_while_all_users_are_compared(shop: ub.DurableRecommender) -> None:
    events: list[Callable[[], object]] = [
        lambda: shop.learn("ann", ["tea"], basket="new"),  # compared already
        lambda: shop.forget("bob", basket="two"),
        lambda: shop.learn("new", ["tea", "new"], basket=1),
        lambda: shop.forget("ann"),
    ]
    assert verified(shop, events) == ub.Verification(ok=True, users=3, mismatches=())


@pytest.mark.parametrize("params", [PARAMS, ub.Params(neighbors=5), ub.Params(neighbors=5, pool=50)], ids=str)
def test_others_learn_and_forget_while_shared_structures_are_checked(params: ub.Params) -> None:
    """In a shop that is too large for one step: after each step, baskets and users come and go."""
    chance = random.Random(0)
    rows = [(user, basket, chance.randrange(500)) for user in range(3000) for basket in range(3) for _ in range(20)]
    rec = ub.Recommender(params).fit(pl.DataFrame(rows, schema=["user", "basket", "item"], orient="row"))
    rec.digest()
    checker, steps = InvariantChecker(rec._model.state), 0
    checks = verification._shared_checks(checker, rec._model.digest)
    shared = verification.SharedInvariants(chain(checks, checker.id_faults(), checker.recount()))
    while shared.advance():
        steps += 1
        for _ in range(30):
            rec.learn(chance.randrange(4000), [chance.randrange(600) for _ in range(9)], basket=chance.randrange(9))
            rec.forget(chance.randrange(4000))
        rec.digest()
    assert shared.report() == []
    assert steps > (rec.params.pool or 3000) // SHARD_SIZE  # one for each shard, and more
    assert rec.verify(1).ok


@pytest.mark.usefixtures("one_at_a_time")
def test_a_user_who_changes_after_the_comparison_is_compared_again(shop: ub.DurableRecommender) -> None:
    state = shop._model.state
    first = state.users.names[0]

    def learn_and_spoil() -> None:
        shop.learn(first, ["tea"], basket="new")
        testing.row(state.histories.items, 0, testing.CODE)[-1] ^= 1

    report = verified(shop, [learn_and_spoil])
    assert f"the vector of user {first!r}" in report.mismatches
    assert not verified(shop, [lambda: None]).ok


@pytest.mark.usefixtures("one_at_a_time")
def test_a_user_who_is_forgotten_meanwhile_has_no_mismatches(shop: ub.DurableRecommender) -> None:
    state = shop._model.state
    first = state.users.names[0]
    kept = testing.row(state.histories.items, 0, testing.CODE).copy()
    testing.row(state.histories.items, 0, testing.CODE)[0] ^= 1

    def mend_and_forget() -> None:
        testing.row(state.histories.items, 0, testing.CODE)[:] = kept
        shop.forget(first)

    assert verified(shop, [mend_and_forget]) == ub.Verification(ok=True, users=2, mismatches=())


def test_no_user_is_watched_after_a_verification(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.verify().ok
    monkeypatch.setattr(verification.FullVerification, "report", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shop.verify()
    assert shop._model.digest._watchers == []


def test_an_item_in_no_basket_is_found(shop: ub.DurableRecommender) -> None:
    shop._model.state.items.add("orphan")
    shop._model.state._admit()
    assert shop.verify().mismatches == ("the ids",)


def test_ids_may_be_the_smallest_and_largest_integers() -> None:
    rec = ub.Recommender()
    rec.learn(-(2**63), [-(2**63), 0, 2**63 - 1, "x"], basket=1)
    rec.learn(2**63 - 1, [5], basket=-(2**63))
    assert rec.verify() == (True, 2, ())
