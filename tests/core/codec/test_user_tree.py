"""The tree of users against one that is hashed level by level with hashlib, and BLAKE2s against hashlib."""

import random
from hashlib import blake2s

import numpy as np
import pytest

from unbasket.core.codec import UserTree

DEPTH = 48
EMPTY = bytes(32)
SALT = bytes(range(32))


def root_of(leaves: list[tuple[int, bytes]], left_out: bytes = b"") -> bytes:
    """Return the root of entries at places, written straight from its definition."""
    level: dict[int, bytes] = {}
    for place in {place for place, _ in leaves}:
        entries = sorted(entry for other, entry in leaves if other == place and entry != left_out)
        if entries:
            level[place] = entries[0] if len(entries) == 1 else blake2s(b"".join(entries), person=b"ub-twins").digest()
    for _ in range(DEPTH):
        level = {
            place: blake2s(level.get(2 * place, EMPTY) + level.get(2 * place + 1, EMPTY), person=b"ub-node").digest()
            for place in {child // 2 for child in level}
        }
    return level.get(0, EMPTY)


def entry_of(id_hash: bytes, data: bytes) -> bytes:
    nonce = blake2s(SALT + data, person=b"ub-nonce").digest()
    value = blake2s(nonce + data, person=b"ub-value").digest()
    return blake2s(id_hash + value, person=b"ub-entry").digest()


def leaf(id_hash: bytes, data: bytes) -> tuple[int, bytes]:
    return int.from_bytes(id_hash[:6], "big"), entry_of(id_hash, data)


def put(tree: UserTree, users: dict[int, tuple[bytes, bytes]]) -> None:
    ids, data = (
        np.frombuffer(b"".join(column), np.uint8).reshape(-1, 32) for column in zip(*users.values(), strict=True)
    )
    tree.put_users(list(users), ids, data)


def some_id(chance: random.Random, *, near: bool) -> bytes:
    """Return the hash of an id; `near`, one of a few places that share long paths or are the same."""
    if not near:
        return chance.randbytes(32)
    start = chance.choice([b"\0\0\0\0\0", b"\0\0\0\0\x01", b"\xff\xff\xff\xff\xff"])
    return start + bytes([chance.randrange(3)]) + chance.randbytes(26)


@pytest.mark.parametrize("seed", range(12))
def test_the_root_is_that_of_the_users_who_are_there(seed: int) -> None:
    """Users come, change and go, some with the same place; the root, and the root without a user, stay right."""
    chance, tree, users = random.Random(seed), UserTree(SALT), dict[int, tuple[bytes, bytes]]()
    near = seed % 2 == 0
    assert tree.root() == EMPTY
    for _ in range(150):
        code = chance.randrange(40)
        if chance.random() < 0.6:
            id_hash = users[code][0] if code in users else some_id(chance, near=near)
            users[code] = id_hash, chance.randbytes(32)
            put(tree, {code: users[code]})
        elif code in users:
            tree.remove(code)
            del users[code]
            assert tree.is_free(code)
        if chance.random() < 0.3:
            check(tree, users, chance)
    for code in list(users):
        tree.remove(code)
    assert (tree.root(), tree.count, tree.residue()) == (EMPTY, 0, 0)


def check(tree: UserTree, users: dict[int, tuple[bytes, bytes]], chance: random.Random) -> None:
    leaves = [leaf(*hashes) for hashes in users.values()]
    assert tree.root() == root_of(leaves)
    assert tree.count == len(users)
    assert tree.check_top(2)
    assert all(tree.check_region(region, 2) for region in range(4))
    for code, (id_hash, data) in users.items():
        arrays = np.frombuffer(id_hash, np.uint8), np.frombuffer(data, np.uint8)
        assert tree.holds(code, *arrays)
        assert not tree.holds(code, arrays[1], arrays[1])
        siblings, members = tree.path(arrays[0])
        assert code in members
        assert root_along(siblings, id_hash, [tree.entry(member) for member in members]) == tree.root()
    left_out = chance.sample(list(users), min(len(users), 2))
    rest = [leaf(*hashes) for code, hashes in users.items() if code not in left_out]
    assert tree.root_without(left_out) == root_of(rest)
    absent = some_id(chance, near=False)
    siblings, members = tree.path(np.frombuffer(absent, np.uint8))
    assert members == []
    assert root_along(siblings, absent, []) == tree.root()


def root_along(siblings: list[bytes | None], id_hash: bytes, entries: list[bytes]) -> bytes:
    """Return the root at the end of a path, from the entries at a place."""
    entries = sorted(entries)
    hashed = b"".join(entries) if len(entries) < 2 else blake2s(b"".join(entries), person=b"ub-twins").digest()
    node, place = hashed or EMPTY, int.from_bytes(id_hash[:6], "big")
    for depth in reversed(range(DEPTH)):
        pair = [node, siblings[depth] or EMPTY]
        if place >> (DEPTH - 1 - depth) & 1:
            pair.reverse()
        node = EMPTY if pair == [EMPTY, EMPTY] else blake2s(b"".join(pair), person=b"ub-node").digest()
    return node


def test_many_users_region_by_region() -> None:
    chance, tree = random.Random(0), UserTree(SALT)
    users = {code: (chance.randbytes(32), chance.randbytes(32)) for code in range(2_000)}
    put(tree, users)
    for region in range(8):
        tree.hash_region(region, 3)
    assert tree.root() == root_of([leaf(*hashes) for hashes in users.values()])


def test_users_who_are_linked_together() -> None:
    """Users who are noted, and changed or removed before they are linked, and others who are there already."""
    chance, tree = random.Random(2), UserTree(SALT)
    users = {code: (some_id(chance, near=code % 3 == 0), chance.randbytes(32)) for code in range(300)}
    assert len(tree.staged()) == 0
    put(tree, {code: users[code] for code in range(100)})
    later = list(range(100, 300))
    ids, data = (np.array([list(users[code][i]) for code in later], np.uint8) for i in range(2))
    tree.stage_users(later, ids, data)
    assert tree.count == 100
    assert 150 in tree
    order = tree.staged()
    assert sorted(order.tolist()) == later
    places = [users[code][0][:2] for code in order.tolist()]
    assert places == sorted(places)
    for code in (150, 151):
        tree.remove(code)
        assert tree.is_free(code)
        del users[code]
    users[152] = users[152][0], chance.randbytes(32)
    put(tree, {152: users[152]})
    tree.link(order[:50])
    tree.link(order)
    assert len(tree.staged()) == 0
    check(tree, users, chance)
    for code in users:
        tree.remove(code)
    assert tree.residue() == 0


def test_a_spoiled_hash_is_found() -> None:
    """Put the same code under another id: its place is then wrong, and the check says so."""
    chance, tree = random.Random(1), UserTree(SALT)
    put(tree, {code: (bytes([code]) * 32, chance.randbytes(32)) for code in range(8)})
    tree.root()
    assert not tree.holds(3, np.full(32, 4, np.uint8), np.zeros(32, np.uint8))
    assert tree.is_free(900)
    assert 3 in tree
    assert 900 not in tree
