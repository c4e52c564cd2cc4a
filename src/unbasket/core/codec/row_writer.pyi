from typing import Any, final

@final
class RowWriter: ...

@final
class BasketRowWriter:
    size: int
    checksums: int
    def __init__(self, columns: Any, seed: int) -> None: ...
    def take(self, first: int, most: int) -> list[tuple[int, bytes]]: ...
