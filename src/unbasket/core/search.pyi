from collections.abc import Callable
from typing import Protocol

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.column import Column
from unbasket.core.index import Index
from unbasket.core.nearest import Nearest
from unbasket.core.ranking import Ranking
from unbasket.core.vector import Vector

class Task(Protocol):
    """Something to do, which is begun by a helper or given up by the one who asked."""

    error: BaseException | None

    def give_up(self) -> bool: ...
    def wait(self) -> None: ...

class Helpers(Protocol):
    """Threads that may be asked for help."""

    count: int

    def ask(self, work: Callable[[], object], /) -> Task: ...

class SearchSpace:
    nearest: Nearest
    ranking: Ranking
    helpers: Helpers | None
    def recommend(
        self,
        index: Index,
        vector: Vector,
        user: int,
        k: int,
        alpha: float,
        choice: tuple[Codes, Codes | None] | None,
        orders: tuple[Column, Column],
        n: int,
    ) -> list[tuple[int, float]]: ...
    def neighbors(self, index: Index, vector: Vector, user: int, k: int, order: Column) -> tuple[Codes, Int64s]: ...
    def holders(
        self, index: Index, vector: Vector, user: int, items: Int64s, k: int, order: Column
    ) -> tuple[Int64s, Int64s, Int64s, int]: ...
    def sum_of(self, index: Index, users: Codes) -> tuple[Codes, Int64s]: ...
    def best_of(
        self, vector: Vector, items: Codes, totals: Int64s, found: int, alpha: float, order: Column, n: int
    ) -> list[tuple[int, float]]: ...
    def leftovers(self) -> int: ...
