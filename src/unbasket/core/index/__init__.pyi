from collections.abc import Callable
from typing import Self, final

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.memory import JaggedArray
from unbasket.core.model import Checkpoints, EventApplier, FoldWorkspace, Histories, LearnedSums, Rule, Vector

@final
class Shard:
    vectors: JaggedArray
    postings: JaggedArray
    end: int
    def __new__(cls, size: int) -> Self: ...

@final
class Hubs:
    hub_count: int
    entry_count: int
    item_count: int
    def __new__(cls, size: int) -> Self: ...

MAX_BASKET: int
SHARD_SIZE: int

@final
class Index:
    shards: list[Shard]
    shard_size: int
    slot_end: int
    item_room: int
    hubs: Hubs
    def __new__(cls, hubs_size: int, shard_size: int = ...) -> Self: ...
    def admit(self, users: int, items: int) -> int: ...
    def fill(self, ends: Int64s, items: Codes, weights: Codes, scales: Codes) -> None: ...
    def rebuild_hubs(self) -> None: ...
    def vector_of(self, user: int) -> Vector: ...
    def entries(self, user: int) -> tuple[dict[int, int], dict[int, int], int, int]: ...
    def holder_counts(self, items: Codes) -> Int64s: ...
    def entry_count(self) -> int: ...

@final
class Pool:
    size: int
    count: int
    def __new__(cls, size: int, precedes: Callable[[int, int], bool]) -> Self: ...
    def holds(self, user: int) -> bool: ...
    def knows(self, user: int) -> bool: ...
    def priority_of(self, user: int) -> int: ...
    def last(self) -> int: ...

@final
class LiveIndex(EventApplier):
    checkpoints: Checkpoints
    index: Index
    pool: Pool | None
    space: FoldWorkspace
    sums: LearnedSums | None
    rounded: JaggedArray
    successor: LiveIndex | None
    def __init__(
        self,
        histories: Histories,
        rule: Rule,
        index: Index,
        pool: Pool | None = None,
        sums: LearnedSums | None = None,
    ) -> None: ...
    def join(self, user: int, priority: int) -> None: ...
    def leave(self, user: int) -> None: ...
    def refresh(self, user: int) -> None: ...
    def withdraw(self, user: int) -> None: ...
    def vector_of(self, user: int, space: FoldWorkspace) -> Vector: ...
