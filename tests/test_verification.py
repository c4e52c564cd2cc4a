"""A proof that can fail: each place where something of a user could stay is spoiled, and the proof must see it.

A shop of three, all of them in the crowd, in which ann's history is long enough for marks. Whatever is forgotten of
ann, a spoiler puts something back or changes a fact right after the model was brought up to date, which is before
the receipt is written.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
import polars as pl
import pytest

import unbasket as ub
from unbasket import update
from unbasket.digest import Digest
from unbasket.ids import FREE
from unbasket.kernels.pool import LENGTH, START, append
from unbasket.memory import Memory, Trace
from unbasket.model import history
from unbasket.model.marks import GROUPS
from unbasket.model.marks import save as save_mark
from unbasket.neighbors.crowd import ITEM, WEIGHT
from unbasket.neighbors.index import USER
from unbasket.update import Live

Function = TypeVar("Function", bound=Callable[..., Any])
compiled: Callable[[Function], Function] = cast("Any", numba.njit)

Spoiler = Callable[[Live, int, int, int], None]  # of a user (a code), one of the user's items, and a magnitude

PARAMS = ub.Params(group_size=2, neighbors=5)
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
    monkeypatch.setattr("unbasket.memory.MARK_EVERY", 2)
    monkeypatch.setattr("unbasket.memory.LONG", 3)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ub.DurableRecommender]:
    rows = [(user, b, item) for user, baskets in BASKETS.items() for b, items in baskets.items() for item in items]
    with ub.open(tmp_path / "shop.db", PARAMS) as rec:
        rec.fit(pl.DataFrame(rows, schema=["user", "basket", "item"], orient="row"))
        rec.learn("ann", ["salt"], basket="eight")
        assert rec.verify().ok
        yield rec


# Spoilers of the compiled core ----------------------------------------------------------------------------------


@compiled
def a_basket(live: Live, user: int, item: int, ___: int) -> None:
    history.insert(live.histories, user, 0, 7, 0, 0, np.array([item], np.uint32), 0)


@compiled
def an_item_of_no_basket(live: Live, user: int, item: int, ___: int) -> None:
    place = append(live.histories.items, user)
    live.histories.items.data[place, 0] = item


@compiled
def an_entry_of_the_vector(live: Live, user: int, item: int, ___: int) -> None:
    place = append(live.index.vectors, user)
    live.index.vectors.data[place, ITEM] = item
    live.index.vectors.data[place, WEIGHT] = 5


@compiled
def an_entry_under_an_item(live: Live, user: int, item: int, ___: int) -> None:
    place = append(live.index.users, item)
    live.index.users.data[place, USER] = user
    live.index.users.data[place, WEIGHT] = 5


@compiled
def an_entry_that_was_another_users(live: Live, user: int, item: int, ___: int) -> None:
    start = live.index.users.rows[item, START]
    for place in range(start, start + live.index.users.rows[item, LENGTH]):
        if live.index.users.data[place, USER] != user:
            live.index.users.data[place, USER] = user
            return


@compiled
def a_norm(live: Live, user: int, __: int, ___: int) -> None:
    live.index.norm[user] += 1


@compiled
def the_head_of_a_chain(live: Live, user: int, __: int, level: int) -> None:
    live.index.first[level] = user + 1


@compiled
def a_chain_that_ends_nowhere(live: Live, user: int, __: int, level: int) -> None:
    live.index.first[level] = live.index.after[user] = live.index.before[user] = user + 1


@compiled
def a_link_of_a_chain(live: Live, user: int, __: int, ___: int) -> None:
    live.index.after[user] = user + 1


@compiled
def a_count_of_a_chain(live: Live, _: int, __: int, level: int) -> None:
    live.index.population[level] += 1


@compiled
def a_mark_of_a_member(live: Live, user: int, __: int, ___: int) -> None:
    live.index.crowd.is_member[user] = not live.index.crowd.is_member[user]


@compiled
def a_member(live: Live, user: int, __: int, ___: int) -> None:
    live.index.crowd.members = np.append(live.index.crowd.members, np.uint32(user))


@compiled
def a_sum_of_the_crowd(live: Live, _: int, item: int, ___: int) -> None:
    live.index.crowd.sums[item] += 5


@compiled
def a_sum_on_the_crowds_list(live: Live, _: int, item: int, ___: int) -> None:
    live.index.crowd.listed[max(live.index.crowd.place[item], 1) - 1] += 5


@compiled
def a_place_on_the_crowds_list(live: Live, _: int, item: int, ___: int) -> None:
    live.index.crowd.place[item] += 1


@compiled
def a_peak_of_the_crowd(live: Live, _: int, __: int, ___: int) -> None:
    live.index.crowd.peaks[0] += 5


@compiled
def the_length_of_the_crowd(live: Live, _: int, __: int, ___: int) -> None:
    live.index.crowd.records += 1


@compiled
def a_mark(live: Live, user: int, __: int, ___: int) -> None:
    save_mark(live.marks, user, 3, 3, 1, live.space, 0)


@compiled
def a_count_of_an_item(live: Live, _: int, item: int, ___: int) -> None:
    live.histories.popularity[item] += 1


SPOILERS: list[Spoiler] = [
    a_basket,
    an_item_of_no_basket,
    an_entry_of_the_vector,
    an_entry_under_an_item,
    an_entry_that_was_another_users,
    a_norm,
    the_head_of_a_chain,
    a_chain_that_ends_nowhere,
    a_link_of_a_chain,
    a_count_of_a_chain,
    a_mark_of_a_member,
    a_member,
    a_sum_of_the_crowd,
    a_sum_on_the_crowds_list,
    a_place_on_the_crowds_list,
    a_peak_of_the_crowd,
    the_length_of_the_crowd,
    a_mark,
    a_count_of_an_item,
]


def forget_spoiled(
    rec: ub.DurableRecommender, scope: str, patch: pytest.MonkeyPatch, spoil: Callable[[Trace], object]
) -> ub.Receipt:
    """Forget something of ann, and spoil it before anybody looks."""
    trace = rec._memory.trace("ann")
    assert trace is not None
    refresh = update.refresh

    def spoiled(live: Live, user: int) -> None:
        refresh(live, user)
        assert user == trace.owner
        spoil(trace)

    patch.setattr(update, "refresh", spoiled)
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
    code = shop._memory.items.codes[item]
    receipt = forget_spoiled(
        shop, scope, monkeypatch, lambda trace: spoiler(shop._memory._live, trace.owner, code, trace.level)
    )
    assert not receipt.verified
    assert not shop.verify().ok
    assert not shop.verify("ann").ok


@compiled
def spoil_marks(live: Live, field: int) -> None:
    """Change the state that every mark has saved (`field` -1), or a fact about every mark."""
    if field < 0:
        live.marks.levels.data[:, 2] *= 1.5
    else:
        live.marks.table[live.marks.newest[0], field] += 1


@pytest.mark.parametrize("field", [-1, GROUPS])
def test_marks_that_remain_are_looked_at(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, field: int
) -> None:
    assert shop._memory.users.codes["ann"] == 0
    receipt = forget_spoiled(shop, "item of a basket", monkeypatch, lambda _: spoil_marks(shop._memory._live, field))
    assert not receipt.verified
    assert shop.verify("ann").mismatches == ("the marks of user 'ann'",)
    assert shop.verify().mismatches == ("the marks of user 'ann'",)


# Spoilers of ids and of the digest ------------------------------------------------------------------------------


def test_a_name_that_stays_in_the_order_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = forget_spoiled(shop, "user", monkeypatch, lambda _: shop._memory.users._texts.add("ann"))
    assert not receipt.verified
    assert shop.verify("ann").mismatches == ("the id of user 'ann'",)
    assert shop.verify().mismatches == ("the ids",)
    assert shop.verify("zoe").ok


def test_a_name_that_keeps_its_code_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    users = shop._memory.users
    with monkeypatch.context() as patch:
        patch.setattr(users, "remove", lambda _: None)
        assert not forget_spoiled(shop, "user", patch, lambda _: None).verified
    assert not shop.verify().ok


@pytest.mark.parametrize("scope", ["user", "basket"])
def test_a_basket_id_that_stays_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str) -> None:
    monkeypatch.setattr(Memory, "_drop_basket", lambda *_: None)
    if scope == "user":
        monkeypatch.setattr(shop._memory, "_long", Undroppable(shop._memory._long))
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
    shop._memory.users._texts.add("zoe")
    shop.forget("zoe")
    assert [receipt.verified for receipt in shop.receipts()] == [True, False]


def test_a_forget_that_forgets_nothing_shows(shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "forget", lambda *_: ub.Forgotten(0, 0, 0))
    for scope in SCOPES.values():
        shop.forget("ann", **scope)
    assert [receipt.verified for receipt in shop.receipts()] == [False] * 4


@compiled
def litter(live: Live) -> None:
    live.index.vectors.data[live.index.vectors.used - 1, 0] = 1


def test_what_is_not_wiped_shows(shop: ub.DurableRecommender) -> None:
    shop.forget("cat")
    litter(shop._memory._live)
    assert shop.verify().mismatches == ("something of nobody's in the places that were left",)
    assert shop.verify("cat").mismatches == ("something of nobody's in the places that were left",)


def test_an_entry_of_nobody_shows_whoever_is_asked_for(shop: ub.DurableRecommender) -> None:
    code = shop._memory.users.codes["cat"]
    shop.forget("cat")
    assert shop._memory.users.names[code] == FREE
    an_entry_under_an_item(shop._memory._live, code, shop._memory.items.codes["tea"], 0)
    wrong = ("the entries under items", "something of nobody's in the entries under items")
    assert shop.verify("cat") == shop.verify("zoe") == ub.Verification(False, 0, wrong)
    assert shop.verify("ann") == ub.Verification(False, 1, wrong)
