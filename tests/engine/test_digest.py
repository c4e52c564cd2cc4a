"""The digest: against the same in plain Python, and kept up to date in steps."""

import random
from hashlib import blake2b, blake2s
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.codec.test_user_tree import root_of

from unbasket.domain.ids import in_order
from unbasket.engine import digest as digests
from unbasket.engine.digest import NO_SALT, Digest, params_hash
from unbasket.engine.state import EngineState
from unbasket.params import Params

SIZES = (0, 1, 31, 32, 127, 128, 129, 255, 256, 257, 65_535, 65_536)  # boundaries of MessagePack and BLAKE2b

numbers = st.one_of(st.sampled_from([s * n for n in SIZES for s in (-1, 1)]), st.integers(-(2**63), 2**63 - 1))
texts = st.text("aé😀", min_size=1, max_size=300)


def events_of(ids: st.SearchStrategy[Any], basket_ids: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    items = st.lists(ids, min_size=1, max_size=20, unique=True)
    return st.lists(st.tuples(ids, basket_ids, items, st.none() | numbers), max_size=8)


events_of_any_type = st.one_of(events_of(numbers, texts), events_of(texts, numbers), events_of(texts, texts))


def expected(state: EngineState, salt: bytes = NO_SALT) -> str:
    """Return the digest, written straight from its definition."""
    leaves = [leaf_of(state, user, salt) for user in state.users.sorted()]
    return blake2s(params_hash(state.params) + root_of(leaves), person=b"ub-state").hexdigest()


def leaf_of(state: EngineState, user: Any, salt: bytes) -> tuple[int, bytes]:
    """Return the place of a user, and the entry there."""
    history = [
        (basket, time, opens, in_order([state.items.names[code] for code in items]))
        for basket, time, items, opens in state.records(user)
    ]
    data = blake2b(msgspec.msgpack.encode((user, history)), digest_size=32, person=b"unbasket user").digest()
    if user in state.suppressed:
        message = data + msgspec.msgpack.encode(in_order(state.suppressed[user]))
        data = blake2b(message, digest_size=32, person=b"suppressions").digest()
    id_hash = blake2s(str(user).encode(), person=b"ub-id").digest()
    nonce = blake2s(salt + data, person=b"ub-nonce").digest()
    value = blake2s(nonce + data, person=b"ub-value").digest()
    return int.from_bytes(id_hash[:6], "big"), blake2s(id_hash + value, person=b"ub-entry").digest()


@settings(max_examples=200, deadline=None)
@given(events_of_any_type, st.booleans())
def test_the_digest_is_the_hash_of_the_remaining_data(events: list[Any], varying: bool) -> None:
    state = EngineState(Params(grouping="varying" if varying else "fixed", group_size=2, alpha=0.8))
    for user, basket, items, time in events:
        state.learn(user, items, basket, None if time == -(2**63) else time)
        if len(items) > 10:
            state.suppress(user, items[0])
            state.suppress(user, items[-1])
    assert digest_of(state) == expected(state)


def digest_of(state: EngineState) -> str:
    """Return the digest of a state with data."""
    digest = Digest(state)
    digest.wipe_all(list(state.users.codes.values()))
    return digest.value()


@pytest.mark.parametrize("size", [n for n in SIZES if n])
def test_long_lists_and_texts(size: int) -> None:
    state = EngineState(Params())
    state.learn("x" * size, list(range(min(size, 8192))), "é" * size, -size)
    for basket in range(min(size, 300)):
        state.learn("many", [basket], str(basket), None)
    assert digest_of(state) == expected(state)


@pytest.mark.parametrize("seed", range(4))
def test_the_digest_is_kept_up_to_date_in_steps(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Users come, change and go while the others are hashed, few at a time."""
    monkeypatch.setattr(digests, "_STEP", 3)
    monkeypatch.setattr(digests, "_MAX_STALE", 5)
    chance, state = random.Random(seed), EngineState(Params())
    digest = Digest(state)
    for number in range(400):
        user = chance.randrange(60)
        code = state.users.codes.get(user)
        if chance.random() < 0.6 or code is None:
            state.learn(user, [chance.randrange(9)], number, None)
            code = state.users.codes[user]
        else:
            state.forget(user, None, chance.choice([None, chance.randrange(9)]))
        digest.wipe([code])
        if chance.random() < 0.5:
            digest.advance()
        if chance.random() < 0.05:
            assert digest.value() == expected(state)
            assert all(digest.checks())
    assert digest.value() == expected(state)
    assert all(digest.checks())
    assert all(digest.is_exact(code) for code in range(len(state.users.names)))


def test_many_changed_users_are_not_listed() -> None:
    state = EngineState(Params())
    digest = Digest(state)
    for user in range(10_000):
        state.learn(user, ["milk"], 1, None)
        digest.wipe([state.users.codes[user]])
    assert len(digest._stale) < 5_000
    assert digest.advance()
    assert digest.value() == expected(state)
    assert not digest.advance()
