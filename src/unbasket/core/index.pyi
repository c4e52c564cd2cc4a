from unbasket.core.arrays import Codes, Int64s
from unbasket.core.crowd import Crowd
from unbasket.core.rows import Rows
from unbasket.core.vector import Vector

ONE: int
MAX_BASKET: int

class Index:
    vectors: Rows
    postings: Rows
    user_room: int
    item_room: int
    crowd: Crowd
    def __init__(self, crowd_size: int) -> None: ...
    def admit(self, users: int, items: int) -> None: ...
    def fill(self, ends: Int64s, items: Codes, weights: Codes) -> None: ...
    def gather_crowd(self) -> None: ...
    def vector_of(self, user: int) -> Vector: ...
