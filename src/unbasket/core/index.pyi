from unbasket.core.arrays import Codes, Int64s
from unbasket.core.crowd import Crowd
from unbasket.core.part import Part
from unbasket.core.vector import Vector

ONE: int
MAX_BASKET: int
PART_SIZE: int

class Index:
    parts: list[Part]
    part_size: int
    part_count: int
    slot_end: int
    user_room: int
    item_room: int
    crowd: Crowd
    def __init__(self, crowd_size: int, part_size: int = ...) -> None: ...
    def admit(self, users: int, items: int) -> None: ...
    def fill(self, ends: Int64s, items: Codes, weights: Codes) -> None: ...
    def gather_crowd(self) -> None: ...
    def holds(self, user: int) -> bool: ...
    def vector_of(self, user: int) -> Vector: ...
