"""The digest of an engine's state: equal if and only if parameters and remaining data are equal.

It is the hash of a sum, modulo 2^256, of one BLAKE2b hash of the parameters and one per user, of the user's baskets by
external ids and of their suppressions. A sum does not depend on the order of users, and a change to one user costs one
user's hash. The sum itself is not shown: the difference of the sums before and after a forget would be the forgotten
user's hash.
"""

from collections.abc import Iterator
from dataclasses import astuple
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from unbasket.core.codec import UserHasher
from unbasket.core.memory import GrowableArray
from unbasket.domain.ids import FREE, Id, in_order
from unbasket.engine.state import EngineState
from unbasket.params import Params

_SIZE = 32
_MODULUS: int = 2 ** (8 * _SIZE)
_MAX_STALE = 4096  # users to list as changed; with more, all users are scanned
_STEP = 256  # users that a step hashes, in less than a millisecond


def params_hash(params: Params) -> int:
    """Return the hash of the parameters that are not None."""
    given = tuple(value for value in astuple(params) if value is not None)
    return _number(blake2b(repr(given).encode(), digest_size=_SIZE, person=b"unbasket params").digest())


def _total(hashes: npt.NDArray[np.uint8]) -> int:
    """Return the sum of hashes, as numbers of 256 bits."""
    columns: list[int] = hashes.view(">u4").sum(axis=0, dtype=np.uint64).tolist()
    return sum(column << 32 * power for power, column in enumerate(reversed(columns)))


def _extended(digest: bytes, suppressed: set[Id]) -> npt.NDArray[np.uint8]:
    items = msgspec.msgpack.encode(in_order(suppressed))
    # The personalization string is part of every digest on record, so it keeps its old word.
    return np.frombuffer(blake2b(digest + items, digest_size=_SIZE, person=b"suppressions").digest(), np.uint8)


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big")


class Digest:
    """The digest of a state, kept up to date: users that have changed are hashed when the digest is asked for.

    A change zeroes the user's hash at once. So users without a hash are those to be hashed, and the sum is that of the
    hashes that are there.
    """

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._hasher = UserHasher(b"unbasket user")
        self._watchers: list[set[int]] = []
        self.reset()

    def reset(self) -> None:
        """Start over without hashes: an interrupt may have torn them."""
        self._sum = params_hash(self._state.params)
        self._array = GrowableArray(_SIZE // 8)
        self._hashes = self._view()
        self._stale: set[int] = set()
        self._seen: int | None = 0  # number of users scanned so far, while all are scanned

    def _view(self) -> npt.NDArray[np.uint8]:
        return np.asarray(self._array).view(np.uint8)

    def wipe(self, code: int) -> None:
        """Zero the hash of a user who is new or has changed."""
        if code < len(self._hashes):
            self._sum = self.rest(code)
            self._hashes[code] = 0
        for changed in self._watchers:
            changed.add(code)
        if self._seen is None or code < self._seen:
            self._stale.add(code)
            if len(self._stale) > _MAX_STALE:
                self.wipe_all([])

    def watch(self) -> set[int]:
        """Return a set that gets the codes of users who change, until `unwatch`."""
        self._watchers.append(set())
        return self._watchers[-1]

    def unwatch(self, changed: set[int]) -> None:
        """Stop adding to a set."""
        self._watchers = [watcher for watcher in self._watchers if watcher is not changed]

    def wipe_all(self, codes: list[int]) -> None:
        """Zero the hashes of many users, and scan all users for the next digest."""
        for changed in self._watchers:
            changed.update(codes)
        hashed = [code for code in codes if code < len(self._hashes)]
        self._sum = (self._sum - _total(self._hashes[hashed])) % _MODULUS
        self._hashes[hashed] = 0
        self._stale.clear()
        self._seen = 0

    def advance(self) -> bool:
        """Run a step of a scan, if there is one; return whether there are more."""
        if self._seen is None:
            return False
        self._make_room()
        names, first = self._state.users.names, self._seen
        self._seen = min(first + _STEP, len(names))
        missing = np.flatnonzero(~self._hashes[first : self._seen].any(axis=1)) + first
        self._hash([code for code in missing.tolist() if names[code] != FREE])
        if self._seen == len(names):
            self._seen = None
        return self._seen is not None

    def follow_params(self, old: Params) -> None:
        """Replace the hash of the old parameters by that of the current ones."""
        self._sum = (self._sum - params_hash(old) + params_hash(self._state.params)) % _MODULUS

    def value(self) -> str:
        """Return the digest in hex."""
        while self.advance():
            pass
        self._make_room()
        names = self._state.users.names
        self._hash([code for code in self._stale if names[code] != FREE])
        self._stale.clear()
        return blake2b(self._sum.to_bytes(_SIZE, "big"), digest_size=_SIZE, person=b"unbasket").hexdigest()

    def _make_room(self) -> None:
        count = len(self._state.users.names)
        if count > len(self._hashes):
            self._hashes = np.zeros((0, _SIZE), np.uint8)  # without a view, the array can grow in place
            self._array = self._array.extended(count + count // 4)
            self._hashes = self._view()

    def _hash(self, codes: list[int]) -> None:
        """Hash users without a hash, and add the hashes to the sum."""
        hashes = self._hashes_of(codes)
        self._hashes[codes] = hashes
        self._sum = (self._sum + _total(hashes)) % _MODULUS

    def _hashes_of(self, codes: list[int]) -> npt.NDArray[np.uint8]:
        state, items, hashes = self._state, self._state.items, np.empty((len(codes), _SIZE), np.uint8)
        self._hasher.hash_users(
            state.histories, codes, state.users.names, items.names, items.labels, state.baskets.names, hashes
        )
        for row, code in enumerate(codes) if state.suppressed else ():
            suppressed = state.suppressed.get(state.users.names[code])
            if suppressed:
                hashes[row] = _extended(hashes[row].tobytes(), suppressed)
        return hashes

    def rest(self, *codes: int) -> int:
        """Return the sum without the hashes of these users."""
        return (self._sum - sum(_number(bytes(self._hashes[code])) for code in codes)) % _MODULUS

    def is_exact(self, code: int) -> bool:
        """Return whether the hash of a code is that of the user's data; without a user, it must be zero."""
        if self._state.users.names[code] == FREE:
            return not self._hashes[code].any()
        return bytes(self._hashes[code]) == self._hashes_of([code]).tobytes()

    def checks(self) -> Iterator[bool]:
        """Check, step by step, that the sum is that of the hashes of the parameters and of all users."""
        names = self._state.users.names
        for first in range(0, len(names), _STEP):
            hashes = self._hashes[first : first + _STEP]
            free = [row for row, name in enumerate(names[first : first + len(hashes)]) if name == FREE]
            yield not hashes[free].any()
        total = params_hash(self._state.params) + _total(self._hashes)
        yield total % _MODULUS == self._sum and not self._hashes[len(names) :].any()
