"""The digest of an engine's state: equal if and only if parameters and remaining data are equal (and the salt, if any).

It is the hash of the parameters' hash and of the root of a sparse Merkle tree over users, `UserTree`. A user's place in
the tree is a hash of their id, so the root does not depend on the order of events, and a change to one user costs one
path. From the tree follow proofs that a user's data is all that is held about them, or that nothing is.

A salt keeps the hashes in a proof from being compared with guesses of others' data. There is none unless it is given.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import astuple
from hashlib import blake2b, blake2s
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from unbasket.core.codec import UserHasher, UserTree
from unbasket.domain.ids import FREE, Id, in_order
from unbasket.engine.state import EngineState
from unbasket.params import Params

SALT_SIZE = 32
"""Bytes of a salt."""

NO_SALT = bytes(SALT_SIZE)
"""The salt of an engine without one."""

_SIZE = 32
_MAX_STALE = 4096  # users to list as changed; with more, all users are scanned
_STEP = 256  # users that a step hashes, in about a millisecond
_LINKED = 4096  # users that a step links into the tree
_NONE = np.empty(0, np.int64)

Hashes = npt.NDArray[np.uint8]


class TreeProof(NamedTuple):
    """A path in the tree of users, as bytes.

    `siblings` are the hashes beside the path of the id, from the root on; None is an empty subtree. `nonce` opens the
    entry of an id that is held. `others` are the entries of further users at the same place, which is rare. They are
    opened as far as the hash of the id, so that no entry of the user can hide among them.
    """

    params: bytes
    siblings: list[bytes | None]
    others: list[bytes]
    nonce: bytes | None


def params_hash(params: Params) -> bytes:
    """Return the hash of the parameters that are not None."""
    given = tuple(value for value in astuple(params) if value is not None)
    return blake2b(repr(given).encode(), digest_size=_SIZE, person=b"unbasket params").digest()


def _region_bits(users: int) -> int:
    """Return the length of the start of a place that about as many users have as a step hashes."""
    return (users // _STEP).bit_length()


def digest_of(params: bytes, root: bytes) -> str:
    """Return the digest of a hash of parameters and a root, in hex."""
    return blake2s(params + root, person=b"ub-state").hexdigest()


def _extended(digest: bytes, suppressed: set[Id]) -> Hashes:
    items = msgspec.msgpack.encode(in_order(suppressed))
    return np.frombuffer(blake2b(digest + items, digest_size=_SIZE, person=b"suppressions").digest(), np.uint8)


class Digest:
    """The digest of a state, kept up to date: users that have changed are hashed when the digest is asked for.

    A user who changes leaves the tree at once, and with them all hashes of nodes above: a hash confirms a guess.
    """

    def __init__(self, state: EngineState, salt: bytes = NO_SALT) -> None:
        self._state = state
        self.salt = salt
        self._hasher = UserHasher(b"unbasket user")
        self._watchers: list[set[int]] = []
        self.reset()

    def reset(self) -> None:
        """Start over without hashes: an interrupt may have torn them."""
        self._params = params_hash(self._state.params)
        self._tree = UserTree(self.salt)
        self._stale: set[int] = set()
        self._seen: int | None = 0  # number of users scanned so far, while all are scanned
        self._unlinked = _NONE  # after a scan: users to be linked into the tree
        self._region = self._bits = 0  # then: regions of the tree still to be hashed, bits of their numbers

    def wipe(self, codes: Collection[int]) -> None:
        """Take users who are new, have changed or were removed out of the tree, with all hashes of their data."""
        for code in codes:
            self._tree.remove(code)
        for changed in self._watchers:
            changed.update(codes)
        seen = self._seen
        self._stale.update(codes if seen is None else [code for code in codes if code < seen])
        if len(self._stale) > _MAX_STALE:
            self.wipe_all([])

    def watch(self) -> set[int]:
        """Return a set that gets the codes of users who change, until `unwatch`."""
        self._watchers.append(set())
        return self._watchers[-1]

    def unwatch(self, changed: set[int]) -> None:
        """Stop adding to a set."""
        self._watchers = [watcher for watcher in self._watchers if watcher is not changed]

    def wipe_all(self, codes: Iterable[int]) -> None:
        """Take many users out of the tree, and scan all users for the next digest."""
        for changed in self._watchers:
            changed.update(codes)
        for code in codes:
            self._tree.remove(code)
        self._stale.clear()
        self._seen, self._unlinked = 0, _NONE

    def advance(self) -> bool:
        """Run a step of a scan, if there is one; return whether there are more."""
        if self._seen is not None:
            names, first = self._state.users.names, self._seen
            self._seen = min(first + _STEP, len(names))
            codes = [code for code in range(first, self._seen) if names[code] != FREE and code not in self._tree]
            self._tree.stage_users(codes, *self._hashes_of(codes))
            if self._seen == len(names):
                self._seen, self._unlinked = None, self._tree.staged()
                self._bits = _region_bits(self._tree.count + len(self._unlinked))
                self._region = 1 << self._bits
        elif len(self._unlinked):
            self._tree.link(self._unlinked[:_LINKED])
            self._unlinked = self._unlinked[_LINKED:]
        elif self._region:
            self._region -= 1
            self._tree.hash_region(self._region, self._bits)
        return self._seen is not None or self._region > 0

    def follow_params(self) -> None:
        """Use the hash of the current parameters from now on."""
        self._params = params_hash(self._state.params)

    def value(self) -> str:
        """Return the digest in hex."""
        while self.advance():
            pass
        names = self._state.users.names
        codes = [code for code in self._stale if names[code] != FREE]
        self._tree.put_users(codes, *self._hashes_of(codes))
        self._stale.clear()
        return digest_of(self._params, self._tree.root())

    def _hashes_of(self, codes: list[int]) -> tuple[Hashes, Hashes]:
        """Return the hashes of the ids of users, and of their data."""
        state, items = self._state, self._state.items
        ids, hashes = np.empty((2, len(codes), _SIZE), np.uint8)
        self._hasher.hash_users(
            state.histories, codes, state.users.names, items.names, items.labels, state.baskets.names, ids, hashes
        )
        for row, code in enumerate(codes) if state.suppressed else ():
            suppressed = state.suppressed.get(state.users.names[code])
            if suppressed:
                hashes[row] = _extended(hashes[row].tobytes(), suppressed)
        return ids, hashes

    def without(self, *codes: int) -> str:
        """Return what the digest would be without these users; call `value` first."""
        return digest_of(self._params, self._tree.root_without(codes))

    def is_exact(self, code: int) -> bool:
        """Return whether the entry of a code is that of the user's data; without a user, there must be none."""
        if self._state.users.names[code] == FREE:
            return self._tree.is_free(code)
        [id_hash], [data] = self._hashes_of([code])
        return self._tree.holds(code, id_hash, data)

    def checks(self) -> Iterator[bool]:
        """Check, step by step, that the tree holds the users that are there, under the hashes of their entries."""
        names = self._state.users.names
        for first in range(0, len(names), _STEP):
            free = (code for code, name in enumerate(names[first : first + _STEP], first) if name == FREE)
            yield all(map(self._tree.is_free, free))
        bits = _region_bits(self._tree.count)
        for region in range(1 << bits):
            yield self._tree.check_region(region, bits)
        self.value()
        yield self._tree.check_top(bits) and self._tree.count == len(self._state.users)
        yield self._params == params_hash(self._state.params)

    def proof(self, user: Id) -> TreeProof:
        """Prove that a user is in the tree of the current digest with all of their data, or is not; see `TreeProof`."""
        self.value()
        id_hash = np.empty(_SIZE, np.uint8)
        self._hasher.hash_id(user, id_hash)
        siblings, members = self._tree.path(id_hash)
        code = self._state.users.codes.get(user)
        nonce = None if code is None else self._tree.nonce(self._hashes_of([code])[1][0])
        others = []
        for member in set(members) - {code}:
            [other_id], [data] = self._hashes_of([member])
            others.append(other_id.tobytes() + self._tree.value(data))
        return TreeProof(self._params, siblings, others, nonce)
