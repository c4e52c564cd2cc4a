import numpy as np
import numpy.typing as npt

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.memory.jagged import JaggedArray
from unbasket.core.model.fold import Rule
from unbasket.core.model.history import Histories

LEARNED: int
TIED: int

class Baskets:
    def __init__(
        self,
        keys: Int64s,
        are_texts: npt.NDArray[np.uint8],
        times: Int64s,
        sizes: Int64s,
        opens: npt.NDArray[np.uint8],
    ) -> None: ...

class EventApplier:
    histories: Histories
    rule: Rule
    items: JaggedArray
    removed: JaggedArray
    def __init__(self, histories: Histories, rule: Rule) -> None: ...
    def admit(self, users: int, items: int) -> None: ...
    def learn(
        self, user: int, key: int, is_text: bool, time: int, items: list[int], search: bool
    ) -> tuple[int, int, int]: ...
    def learn_at(self, user: int, position: int, key: int, is_text: bool, time: int, items: list[int]) -> None: ...
    def comes_last(self, user: int, key: int, is_text: bool, time: int, search: bool) -> bool: ...
    def edit(self, user: int, position: int, items: list[int]) -> list[int]: ...
    def forget_basket(self, user: int, key: int, is_text: bool) -> tuple[int, int, list[int]]: ...
    def forget_item(
        self, user: int, first: int, end: int, item: int
    ) -> tuple[int, int, list[tuple[int, bool]], list[int]]: ...
    def forget_user(self, user: int) -> tuple[int, list[tuple[int, bool]], list[int]]: ...
    def load(
        self,
        baskets: Baskets,
        users: Int64s,
        basket_ends: Int64s,
        item_ends: Int64s,
        items: Codes,
        purchases: Codes,
    ) -> None: ...
