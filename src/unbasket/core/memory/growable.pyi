from typing import Self

from typing_extensions import Buffer

from unbasket.core.arrays import Int64s

class GrowableArray(Buffer):
    count: int
    width: int
    def __init__(self, width: int, count: int = 0) -> None: ...
    @classmethod
    def of(cls, numbers: Int64s) -> Self: ...
    def extended(self, count: int) -> GrowableArray: ...
