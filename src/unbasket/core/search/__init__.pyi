from collections.abc import Callable
from typing import Any, Protocol, final

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.index import Index
from unbasket.core.memory import GrowableArray
from unbasket.core.model import Vector

class _Task(Protocol):
    error: BaseException | None
    def cancel(self) -> bool: ...
    def wait(self) -> None: ...

class _ThreadPool(Protocol):
    size: int
    users_per_thread: int
    def task(self, work: Callable[[], object], /) -> _Task: ...
    def submit(self, task: Any, /) -> None: ...

@final
class Query:
    def __init__(
        self,
        vector: Vector,
        user: int,
        choice: tuple[Codes, Codes | None] | None,
        n: int,
        probe: Vector | None = None,
        least: int = 0,
    ) -> None: ...
    def take(self) -> list[tuple[int, float]]: ...

@final
class QueryBatch:
    def __init__(
        self, index: Index, queries: list[Query], k: int, alpha: float, orders: tuple[GrowableArray, GrowableArray]
    ) -> None: ...

@final
class SearchWorkspace:
    thread_pool: _ThreadPool | None
    def recommend(self, batch: QueryBatch) -> None: ...
    def neighbors(
        self, index: Index, vector: Vector, user: int, k: int, order: GrowableArray
    ) -> tuple[Codes, Int64s]: ...
    def holders(
        self, index: Index, vector: Vector, probe: Vector, user: int, items: Int64s, k: int, order: GrowableArray
    ) -> tuple[Int64s, Int64s, Int64s, int]: ...
    def residue(self) -> int: ...
