from unbasket.core.arrays import Codes, Int64s
from unbasket.core.index.hubs import Hubs
from unbasket.core.index.shard import Shard
from unbasket.core.model.vector import Vector

ONE: int
MAX_BASKET: int
SHARD_SIZE: int

class Index:
    shards: list[Shard]
    shard_size: int
    shard_count: int
    slot_end: int
    user_room: int
    item_room: int
    hubs: Hubs
    def __init__(self, hubs_size: int, shard_size: int = ...) -> None: ...
    def admit(self, users: int, items: int) -> None: ...
    def fill(self, ends: Int64s, items: Codes, weights: Codes) -> None: ...
    def gather_hubs(self) -> None: ...
    def holds(self, user: int) -> bool: ...
    def vector_of(self, user: int) -> Vector: ...
