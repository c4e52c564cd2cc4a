from typing import Self, final

from unbasket.core.arrays import Flags, Int64s
from unbasket.core.model.history import Histories

@final
class UserHasher:
    def __new__(cls, person: bytes) -> Self: ...
    def hash_users(
        self,
        histories: Histories,
        owners: list[int],
        users: list[str | int],
        items: list[str | int],
        labels: Int64s,
        texts: list[str],
        hashes: Flags,
    ) -> None: ...
