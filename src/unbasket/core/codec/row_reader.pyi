from typing import Any

from unbasket.core.arrays import Codes, Int64s

class RowReader:
    count: int
    size: int
    zeroed: int
    checksums: int
    count_since: int
    checksums_since: int
    zeroed_since: int
    def __init__(self, seed: int, step: int, upto: int) -> None: ...
    def add(self, rows: list[tuple[int, bytes]]) -> int: ...
    def columns(self) -> tuple[list[str | int], list[str | int], list[str], dict[str, Any]]: ...

def sorted_by_user(owners: Codes, places: Int64s, users: int) -> Int64s: ...
def gathered(purchases: Codes, sizes: Int64s, order: Int64s) -> Codes: ...
