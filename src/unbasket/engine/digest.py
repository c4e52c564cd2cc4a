"""A fingerprint of what the engine remembers: equal if and only if parameters and remaining data are equal.

It is the hash of a sum, modulo 2^256, of one BLAKE2b hash per user over the user's baskets by external ids, and their
suppressed items if there are any, and of one over the parameters. A sum does not depend on the order of users, and a
change to one user costs one user's hash. The sum itself is not shown: the difference of two sums, before and after a
forget, would be the forgotten user's hash.
"""

from collections.abc import Iterator
from dataclasses import astuple
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from unbasket.core import GrowableArray, UserHasher
from unbasket.domain.ids import FREE, Id, in_order
from unbasket.engine.state import EngineState
from unbasket.params import Params

_SIZE = 32
_MODULUS: int = 2 ** (8 * _SIZE)
_SEVERAL = 4096  # users that may be noted one by one as changed; with more, all are looked through
_PIECE = 256  # users that are hashed at a time, in less than a millisecond


def params_hash(params: Params) -> int:
    """The hash of the parameters; those that are None, as without a pool, are left out."""
    given = tuple(value for value in astuple(params) if value is not None)
    return _number(blake2b(repr(given).encode(), digest_size=_SIZE, person=b"unbasket params").digest())


def _total(hashes: npt.NDArray[np.uint8]) -> int:
    """The sum of some hashes, as numbers of 256 bits."""
    columns = hashes.view(">u4").sum(axis=0, dtype=np.uint64).tolist()
    total = 0
    for column in columns:
        total = (total << 32) + int(column)
    return total


def _extended(digest: bytes, suppressed: set[Id]) -> npt.NDArray[np.uint8]:
    """The hash of a user who has suppressed items."""
    items = msgspec.msgpack.encode(in_order(list(suppressed)))
    return np.frombuffer(blake2b(digest + items, digest_size=_SIZE, person=b"unbasket wishes").digest(), np.uint8)


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big")


class Digest:
    """The digest of a memory, kept up to date: users that changed since the last look are hashed at the next.

    The hash of a user who has changed is wiped at once, so that a user without a hash is one to be hashed, and the sum
    is that of the hashes that are there.
    """

    def __init__(self, memory: EngineState) -> None:
        self._state = memory
        self._sum = params_hash(memory.params)
        self._canon = UserHasher(b"unbasket user")
        self._column = GrowableArray(_SIZE // 8)
        self._hashes = self._view()
        self._stale: set[int] = set()
        self._seen: int | None = None  # how many users were looked through, if all have to be
        self._watching: list[set[int]] = []

    def _view(self) -> npt.NDArray[np.uint8]:
        return np.asarray(self._column).view(np.uint8)

    def wipe(self, owner: int) -> None:
        """Note that the user with this code is new, or has changed: the old hash goes at once."""
        if owner < len(self._hashes):
            self._sum = self.rest(owner)
            self._hashes[owner] = 0
        for changed in self._watching:
            changed.add(owner)
        if self._seen is None or owner < self._seen:
            self._stale.add(owner)
            if len(self._stale) > _SEVERAL:
                self.wipe_all([])

    def watch(self) -> set[int]:
        """A set that all are added to who change from now on, until it is given to `unwatch`."""
        self._watching.append(set())
        return self._watching[-1]

    def unwatch(self, changed: set[int]) -> None:
        """Add nobody to a set any more."""
        self._watching = [watching for watching in self._watching if watching is not changed]

    def wipe_all(self, owners: list[int]) -> None:
        """The same for many users at once."""
        for changed in self._watching:
            changed.update(owners)
        hashed = [owner for owner in owners if owner < len(self._hashes)]
        self._sum = (self._sum - _total(self._hashes[hashed])) % _MODULUS
        self._hashes[hashed] = 0
        self._stale.clear()
        self._seen = 0

    def advance(self) -> bool:
        """Hash some of the users that are to be hashed, if there are many; returns whether there still are."""
        if self._seen is None:
            return False
        self._make_room()
        names, first = self._state.users.names, self._seen
        self._seen = min(first + _PIECE, len(names))
        missing = np.flatnonzero(~self._hashes[first : self._seen].any(axis=1)) + first
        self._hash([owner for owner in missing.tolist() if names[owner] != FREE])
        if self._seen == len(names):
            self._seen = None
        return self._seen is not None

    def follow_params(self, old: Params) -> None:
        """Take over the parameters that the memory has now."""
        self._sum = (self._sum - params_hash(old) + params_hash(self._state.params)) % _MODULUS

    def value(self) -> str:
        """The digest in hex."""
        while self.advance():
            pass
        self._make_room()
        names = self._state.users.names
        self._hash([owner for owner in self._stale if names[owner] != FREE])
        self._stale.clear()
        return blake2b(self._sum.to_bytes(_SIZE, "big"), digest_size=_SIZE, person=b"unbasket").hexdigest()

    def _make_room(self) -> None:
        """Make room for a hash for every code."""
        count = len(self._state.users.names)
        if count > len(self._hashes):
            self._hashes = np.zeros((0, _SIZE), np.uint8)  # the column can grow where it is if nobody looks at it
            self._column = self._column.extended(count + count // 4)
            self._hashes = self._view()

    def _hash(self, owners: list[int]) -> None:
        """Hash users that have no hash yet, and add them up."""
        hashes = self._hashes_of(owners)
        self._hashes[owners] = hashes
        self._sum = (self._sum + _total(hashes)) % _MODULUS

    def _hashes_of(self, owners: list[int]) -> npt.NDArray[np.uint8]:
        """The hashes of all that is held about some users."""
        memory, hashes = self._state, np.empty((len(owners), _SIZE), np.uint8)
        self._canon.hash_users(
            memory.histories,
            owners,
            memory.users.names,
            memory.items.names,
            memory.items.labels,
            memory.texts.names,
            hashes,
        )
        for row, owner in enumerate(owners) if memory.suppressed else ():
            suppressed = memory.suppressed.get(memory.users.names[owner])
            if suppressed:
                hashes[row] = _extended(hashes[row].tobytes(), suppressed)
        return hashes

    def rest(self, *owners: int) -> int:
        """The sum without the parts of the users with these codes."""
        return (self._sum - sum(_number(self._part(owner)) for owner in owners)) % _MODULUS

    def _part(self, owner: int) -> bytes:
        return bytes(self._hashes[owner])

    def is_exact(self, owner: int) -> bool:
        """Whether the part of the user with this code is the hash of what is held: none, if nobody has the code."""
        if self._state.users.names[owner] == FREE:
            return not self._hashes[owner].any()
        return self._part(owner) == self._hashes_of([owner]).tobytes()

    def looks(self) -> Iterator[bool]:
        """Whether the sum is that of the parameters and of the parts of those who are there: piece by piece."""
        names = self._state.users.names
        for first in range(0, len(names), _PIECE):
            hashes = self._hashes[first : first + _PIECE]
            free = [place for place, name in enumerate(names[first : first + len(hashes)]) if name == FREE]
            yield not hashes[free].any()
        total = params_hash(self._state.params) + _total(self._hashes)
        yield total % _MODULUS == self._sum and not self._hashes[len(names) :].any()
