from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.model import Histories

@final
class RowReader:
    count: int
    size: int
    zeroed: int
    checksums: int
    count_since: int
    checksums_since: int
    def __new__(cls, seed: int, step: int, upto: int) -> Self: ...
    def add(self, rows: list[tuple[int, bytes]]) -> int: ...
    mixed: bool
    def columns(self) -> tuple[list[Any], list[Any], list[str] | None, dict[str, Any]]: ...

def sorted_by_user(owners: Codes, positions: Int64s, users: int) -> Int64s: ...
def gathered(purchases: Codes, sizes: Int64s, order: Int64s) -> Codes: ...

@final
class BasketRowWriter:
    size: int
    checksums: int
    def __init__(self, columns: Any, seed: int) -> None: ...
    def take(self, first: int, most: int) -> list[tuple[int, bytes]]: ...

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
        baskets: list[str] | None,
        hashes: npt.NDArray[np.uint8],
    ) -> None: ...

def rows_by_user(user: Codes, users: int, rows: Codes) -> Int64s: ...
def arrange(
    rows: Codes, row_ends: Int64s, basket: Codes, item: Codes, time: Codes, items: int
) -> tuple[Codes, Int64s, Int64s, Codes, int]: ...
def tick(values: Int64s, low: int, table: Codes) -> None: ...
def encode(values: Int64s, low: int, table: Codes, codes: Codes) -> None: ...
