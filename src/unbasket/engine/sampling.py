"""Lots: a number for each user, by which the pool of neighbors is chosen. See docs/pool.md."""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from unbasket.domain.ids import Id

_encode = msgspec.msgpack.Encoder().encode  # no two ids share an encoding


class PoolPriorities:
    """Hashes of ids, keyed with a seed: whoever does not know the seed can't choose an id that has a small one."""

    def __init__(self, seed: int) -> None:
        self._keyed = blake2b(digest_size=8, key=seed.to_bytes(8, "big"), person=b"unbasket pool")

    def of(self, user: Id) -> int:
        """The lot of a user, of 64 bits."""
        return int.from_bytes(self._hash(user), "big")

    def of_all(self, users: Iterable[Id]) -> npt.NDArray[np.uint64]:
        """The lots of many users."""
        return np.frombuffer(b"".join(map(self._hash, users)), ">u8").astype(np.uint64)

    def _hash(self, user: Id) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(_encode(user))
        return keyed.digest()
