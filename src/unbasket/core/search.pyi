from collections.abc import Callable
from typing import Protocol

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.index import Index
from unbasket.core.nearest import Nearest
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
    helpers: Helpers | None
    item_room: int
    def recommend(
        self,
        index: Index,
        vector: Vector,
        user: int,
        k: int,
        alpha: float,
        choice: tuple[Codes, Codes | None],
        orders: tuple[Int64s, Int64s],
        n: int,
    ) -> list[tuple[int, float]]: ...
    def neighbors(self, index: Index, vector: Vector, user: int, k: int, order: Int64s) -> tuple[Codes, Int64s]: ...
    def holders(
        self, index: Index, vector: Vector, user: int, items: Int64s, k: int, order: Int64s
    ) -> tuple[Int64s, Int64s, Int64s, int]: ...
    def sum_of(self, index: Index, users: Codes) -> tuple[Codes, Int64s]: ...
    def best_of(
        self, vector: Vector, items: Codes, totals: Int64s, found: int, alpha: float, order: Int64s, n: int
    ) -> list[tuple[int, float]]: ...
    def leftovers(self) -> int: ...
