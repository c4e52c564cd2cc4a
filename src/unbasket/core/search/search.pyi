from unbasket.core.arrays import Codes, Int64s
from unbasket.core.index.index import Index
from unbasket.core.memory.growable import GrowableArray
from unbasket.core.model.fold import Vector
from unbasket.core.search.knn import NearestNeighbors
from unbasket.core.search.parallel import Helpers
from unbasket.core.search.scoring import Scorer

class Query:
    def __init__(self, vector: Vector, user: int, choice: tuple[Codes, Codes | None] | None, n: int) -> None: ...
    def take(self) -> list[tuple[int, float]]: ...

class QueryBatch:
    def __init__(
        self, index: Index, questions: list[Query], k: int, alpha: float, orders: tuple[GrowableArray, GrowableArray]
    ) -> None: ...

class SearchWorkspace:
    nearest: NearestNeighbors
    ranking: Scorer
    helping: list[SearchWorkspace]
    helpers: Helpers | None
    def recommend(self, asked: QueryBatch) -> None: ...
    def neighbors(
        self, index: Index, vector: Vector, user: int, k: int, order: GrowableArray
    ) -> tuple[Codes, Int64s]: ...
    def holders(
        self, index: Index, vector: Vector, user: int, items: Int64s, k: int, order: GrowableArray
    ) -> tuple[Int64s, Int64s, Int64s, int]: ...
    def sum_of(self, index: Index, users: Codes) -> tuple[Codes, Int64s]: ...
    def best_of(
        self, vector: Vector, items: Codes, totals: Int64s, found: int, alpha: float, order: GrowableArray, n: int
    ) -> list[tuple[int, float]]: ...
    def residue(self) -> int: ...
