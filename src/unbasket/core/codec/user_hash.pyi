import numpy as np
import numpy.typing as npt

from unbasket.core.arrays import Int64s
from unbasket.core.model.history import Histories

class UserHasher:
    def __init__(self, person: bytes) -> None: ...
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
