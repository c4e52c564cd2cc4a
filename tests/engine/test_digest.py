"""The digest: against the same in plain Python, and kept up to date in pieces."""

import random
from hashlib import blake2b
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.domain.ids import in_order
from unbasket.engine import digest as digests
from unbasket.engine.digest import Digest, params_hash
from unbasket.engine.state import EngineState
from unbasket.params import Params

SIZES = (0, 1, 31, 32, 127, 128, 129, 255, 256, 257, 65_535, 65_536)  # where MessagePack or BLAKE2b change their ways

numbers = st.one_of(st.sampled_from([s * n for n in SIZES for s in (-1, 1)]), st.integers(-(2**63), 2**63 - 1))
ids = st.one_of(numbers, st.text("aé😀", min_size=1, max_size=300))
baskets = st.tuples(ids, ids, st.lists(ids, min_size=1, max_size=20, unique=True), st.none() | numbers)


def expected(memory: EngineState) -> str:
    """The digest, written straight from its definition."""
    total = params_hash(memory.params)
    for user in memory.users.sorted():
        history = [
            (basket, time, opens, in_order([memory.items.names[code] for code in items]))
            for basket, time, items, opens in memory.records(user)
        ]
        message = msgspec.msgpack.encode((user, history))
        part = blake2b(message, digest_size=32, person=b"unbasket user").digest()
        if user in memory.suppressed:
            message = part + msgspec.msgpack.encode(in_order(list(memory.suppressed[user])))
            part = blake2b(message, digest_size=32, person=b"unbasket wishes").digest()
        total += int.from_bytes(part, "big")
    return blake2b((total % 2**256).to_bytes(32, "big"), digest_size=32, person=b"unbasket").hexdigest()


@settings(max_examples=200, deadline=None)
@given(st.lists(baskets, max_size=8), st.booleans())
def test_it_is_the_hash_of_what_remains(events: list[Any], varying: bool) -> None:
    memory = EngineState(Params(grouping="varying" if varying else "fixed", group_size=2))
    for user, basket, items, time in events:
        memory.learn(user, items, basket, None if time == -(2**63) else time)
        if len(items) > 10:
            memory.suppress(user, items[0])
            memory.suppress(user, basket)
    assert whole(memory) == expected(memory)


def whole(memory: EngineState) -> str:
    """The digest of a memory that has learned already."""
    digest = Digest(memory)
    digest.wipe_all(list(memory.users.codes.values()))
    return digest.value()


@pytest.mark.parametrize("size", [n for n in SIZES if n])
def test_long_lists_and_texts(size: int) -> None:
    memory = EngineState(Params())
    memory.learn("x" * size, list(range(min(size, 8192))), "é" * size, -size)
    for basket in range(min(size, 300)):
        memory.learn("many", [basket], basket, None)
    assert whole(memory) == expected(memory)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_kept_up_to_date_in_pieces(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Users come, change and go while the others are hashed, few at a time."""
    monkeypatch.setattr(digests, "_PIECE", 3)
    monkeypatch.setattr(digests, "_SEVERAL", 5)
    chance, memory = random.Random(seed), EngineState(Params())
    digest = Digest(memory)
    for number in range(400):
        user = chance.randrange(60)
        owner = memory.users.codes.get(user)
        if chance.random() < 0.6 or owner is None:
            memory.learn(user, [chance.randrange(9)], number, None)
            owner = memory.users.codes[user]
        else:
            memory.forget(user, None, chance.choice([None, chance.randrange(9)]))
        digest.wipe(owner)
        if chance.random() < 0.5:
            digest.advance()
        if chance.random() < 0.05:
            assert digest.value() == expected(memory)
            assert all(digest.looks())
    assert digest.value() == expected(memory)
    assert all(digest.looks())
    assert all(digest.is_exact(owner) for owner in range(len(memory.users.names)))


def test_many_users_are_not_noted_one_by_one() -> None:
    memory = EngineState(Params())
    digest = Digest(memory)
    for user in range(10_000):
        memory.learn(user, ["milk"], 1, None)
        digest.wipe(memory.users.codes[user])
    assert len(digest._stale) < 5_000
    assert digest.advance()
    assert digest.value() == expected(memory)
    assert not digest.advance()
