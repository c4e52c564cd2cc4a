from unbasket.core.arrays import Codes, Int64s
from unbasket.core.column import Column
from unbasket.core.index import Index
from unbasket.core.nearest import Nearest
from unbasket.core.ranking import Ranking
from unbasket.core.together import Helpers
from unbasket.core.vector import Vector

class Question:
    def __init__(self, vector: Vector, user: int, choice: tuple[Codes, Codes | None] | None, n: int) -> None: ...
    def take(self) -> list[tuple[int, float]]: ...

class Round:
    def __init__(
        self, index: Index, questions: list[Question], k: int, alpha: float, orders: tuple[Column, Column]
    ) -> None: ...

class SearchSpace:
    nearest: Nearest
    ranking: Ranking
    helping: list[SearchSpace]
    helpers: Helpers | None
    def recommend(self, asked: Round) -> None: ...
    def neighbors(self, index: Index, vector: Vector, user: int, k: int, order: Column) -> tuple[Codes, Int64s]: ...
    def holders(
        self, index: Index, vector: Vector, user: int, items: Int64s, k: int, order: Column
    ) -> tuple[Int64s, Int64s, Int64s, int]: ...
    def sum_of(self, index: Index, users: Codes) -> tuple[Codes, Int64s]: ...
    def best_of(
        self, vector: Vector, items: Codes, totals: Int64s, found: int, alpha: float, order: Column, n: int
    ) -> list[tuple[int, float]]: ...
    def leftovers(self) -> int: ...
