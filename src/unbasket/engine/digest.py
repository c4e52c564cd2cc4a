"""A fingerprint of what the engine remembers: equal if and only if parameters and remaining data are equal.

It is the hash of a sum, modulo 2^256, of one BLAKE2b hash per user over the user's baskets by external ids, and one
over the parameters. A sum does not depend on the order of users, and a change to one user costs one user's hash. The
sum itself is not shown: the difference of two sums, before and after a forget, would be the forgotten user's hash.
"""

from dataclasses import astuple
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from unbasket.engine.memory import Memory
from unbasket.exchange.ids import FREE, Id, in_order
from unbasket.params import Params

_SIZE = 32
_MODULUS: int = 2 ** (8 * _SIZE)


_encode = msgspec.msgpack.Encoder().encode  # no two values share an encoding


def params_hash(params: Params) -> int:
    """The hash of the parameters; those that are None, as without a pool, are left out."""
    given = tuple(value for value in astuple(params) if value is not None)
    return _number(blake2b(repr(given).encode(), digest_size=_SIZE, person=b"unbasket params").digest())


def _number(digest: bytes) -> int:
    return int.from_bytes(digest, "big")


class Digest:
    """The digest of a memory, kept up to date: users that changed since the last look are hashed at the next."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._sum = params_hash(memory.params)
        self._hashes: npt.NDArray[np.uint8] = np.zeros((0, _SIZE), np.uint8)
        self._stale: set[int] = set()

    def touch(self, owner: int) -> None:
        """Note that the user with this code was added or has learned."""
        self._stale.add(owner)

    def wipe(self, owner: int) -> None:
        """Note that something of the user with this code is gone: the old hash goes at once."""
        self._stale.add(owner)
        self._subtract(owner)

    def _subtract(self, owner: int) -> None:
        if owner < len(self._hashes):
            self._sum = self.rest(owner)
            self._hashes[owner] = 0

    def value(self) -> str:
        """The digest in hex."""
        names = self._memory.users.names
        if len(names) > len(self._hashes):
            hashes = np.zeros((len(names) + len(names) // 4, _SIZE), np.uint8)
            hashes[: len(self._hashes)] = self._hashes
            self._hashes[:] = 0
            self._hashes = hashes
        for owner in self._stale:
            self._subtract(owner)
            if names[owner] != FREE:
                new = self._user_hash(names[owner])
                self._sum = (self._sum + _number(new)) % _MODULUS
                self._hashes[owner] = np.frombuffer(new, np.uint8)
        self._stale.clear()
        return blake2b(self._sum.to_bytes(_SIZE, "big"), digest_size=_SIZE, person=b"unbasket").hexdigest()

    def rest(self, owner: int | None) -> int:
        """The sum without the part of the user with this code, if one is given."""
        return self._sum if owner is None else (self._sum - _number(self._part(owner))) % _MODULUS

    def _part(self, owner: int) -> bytes:
        return bytes(self._hashes[owner])

    def is_exact(self, owner: int) -> bool:
        """Whether the part of the user with this code is the hash of what is held: none, if nobody has the code."""
        name = self._memory.users.names[owner]
        return self._part(owner) == (bytes(_SIZE) if name == FREE else self._user_hash(name))

    def is_whole(self) -> bool:
        """Whether the sum is that of the parameters and of the parts of those who are there."""
        names = self._memory.users.names
        parts = [self._part(owner) for owner in range(len(self._hashes))]
        empty = [part for owner, part in enumerate(parts) if owner >= len(names) or names[owner] == FREE]
        total = params_hash(self._memory.params) + sum(map(_number, parts))
        return total % _MODULUS == self._sum and not any(map(any, empty))

    def _user_hash(self, user: Id) -> bytes:
        """The hash of everything held about a user."""
        names = self._memory.items.names
        baskets = [
            (basket, time, opens, in_order([names[code] for code in items]))
            for basket, time, items, opens in self._memory.records(user)
        ]
        return blake2b(_encode((user, baskets)), digest_size=_SIZE, person=b"unbasket user").digest()
