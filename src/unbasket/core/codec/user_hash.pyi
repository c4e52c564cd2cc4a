from typing import Self, final

import numpy as np
import numpy.typing as npt

from unbasket.core.arrays import Int64s
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
        hashes: npt.NDArray[np.uint8],
    ) -> None: ...
