"""Hashes of users against hashlib over the MessagePack of msgspec; tests/engine/test_digest.py has longer histories."""

from hashlib import blake2b, blake2s
from itertools import product
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unbasket.core.codec import UserHasher
from unbasket.domain.ids import in_order
from unbasket.engine.state import EngineState
from unbasket.params import Params

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text("aé😀", min_size=1, max_size=150)


def histories_of(users: Any, baskets: Any, items: Any) -> st.SearchStrategy[dict[Any, list[Any]]]:
    """Return histories whose ids are drawn from these strategies."""
    basket = st.tuples(baskets, st.lists(items, min_size=1, max_size=9, unique=True), st.none() | st.integers(-9, 9))
    return st.dictionaries(users, st.lists(basket, min_size=1, max_size=6), min_size=1, max_size=3)


HISTORIES = st.one_of([histories_of(*kinds) for kinds in product((NUMBERS, TEXTS), repeat=3)])


def expected(state: EngineState, user: Any, person: bytes) -> bytes:
    history = [
        (basket, time, opens, in_order([state.items.names[code] for code in items]))
        for basket, time, items, opens in state.records(user)
    ]
    return blake2b(msgspec.msgpack.encode((user, history)), digest_size=32, person=person).digest()


@given(HISTORIES, st.binary(max_size=16))
def test_hashes_are_those_of_hashlib(histories: dict[Any, list[Any]], person: bytes) -> None:
    state = EngineState(Params(group_size=2, alpha=0.8))
    for user, history in histories.items():
        for basket, items, time in history:
            state.learn(user, items, basket, time)
    owners = [state.users.codes[user] for user in histories]
    ids, hashes = np.empty((2, len(owners), 32), np.uint8)
    hasher, items = UserHasher(person), state.items
    hasher.hash_users(
        state.histories, owners, state.users.names, items.names, items.labels, state.baskets.names, ids, hashes
    )
    assert [row.tobytes() for row in hashes] == [expected(state, user, person) for user in histories]
    assert [row.tobytes() for row in ids] == [
        blake2s(str(user).encode(), person=b"ub-id").digest() for user in histories
    ]
    hasher.hash_id(next(iter(histories)), hashes[0])
    assert hashes[0].tobytes() == ids[0].tobytes()
