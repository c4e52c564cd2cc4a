"""Priorities: a number for each user, by which the pool of neighbors is sampled. See docs/pool.md."""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from unbasket.domain.ids import Id

_encode = msgspec.msgpack.Encoder().encode  # no two ids share an encoding


class PoolPriorities:
    """Hashes of user ids, keyed with a seed: without the seed, an id with a small hash can't be chosen."""

    def __init__(self, seed: int) -> None:
        self._keyed = blake2b(digest_size=8, key=seed.to_bytes(8, "big"), person=b"unbasket pool")

    def of(self, user: Id) -> int:
        """Return the priority of a user, a number of 64 bits."""
        return int.from_bytes(self._hash(user), "big")

    def of_all(self, users: Iterable[Id]) -> npt.NDArray[np.uint64]:
        """Return the priorities of many users."""
        return np.frombuffer(b"".join(map(self._hash, users)), ">u8").astype(np.uint64)

    def _hash(self, user: Id) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(_encode(user))
        return keyed.digest()
