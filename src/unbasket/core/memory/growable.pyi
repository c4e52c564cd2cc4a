from typing import Self, final

from typing_extensions import Buffer

from unbasket.core.arrays import Int64s

@final
class GrowableArray(Buffer):
    count: int
    width: int
    def __new__(cls, width: int, count: int = 0) -> Self: ...
    @classmethod
    def of(cls, numbers: Int64s) -> Self: ...
    def extended(self, count: int) -> GrowableArray: ...
