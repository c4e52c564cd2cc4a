from typing import Any, Self, final

from unbasket.core.arrays import Codes, Int64s

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
    def columns(self) -> tuple[list[str | int], list[str | int], list[str], dict[str, Any]]: ...

def sorted_by_user(owners: Codes, positions: Int64s, users: int) -> Int64s: ...
def gathered(purchases: Codes, sizes: Int64s, order: Int64s) -> Codes: ...
