from typing import final

import numpy as np
import numpy.typing as npt

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.memory import JaggedArray

UNTIMED: int

@final
class Histories:
    baskets: JaggedArray
    items: JaggedArray
    splices: JaggedArray
    item_room: int
    notes_changes: bool
    def count(self, user: int) -> int: ...
    def sizes(self) -> tuple[int, int]: ...
    def position_of(self, user: int, key: int, is_text: bool) -> int: ...
    def keys(self, user: int) -> tuple[list[int], list[int]]: ...
    def has_texts(self, user: int) -> bool: ...
    def read(self, user: int, first: int, end: int) -> list[tuple[int, bool, int, list[int], bool]]: ...
    def take_changes(self) -> list[tuple[int, int, int, int]]: ...

ONE: int

@final
class Rule:
    varying: bool
    def __init__(
        self, group_size: int, basket_decay: float, group_decay: float, varying: bool, stride: int
    ) -> None: ...

@final
class FoldWorkspace:
    room: int

@final
class Vector:
    def __init__(self, items: Codes, weights: Codes) -> None: ...
    def __len__(self) -> int: ...
    @property
    def items(self) -> Codes: ...
    @property
    def weights(self) -> Codes: ...

CHECKPOINT_EVERY: int

@final
class Checkpoints:
    size: int
    levels: JaggedArray

def worth_keeping(group: int, groups: int, stride: int) -> bool: ...

TIED: int

@final
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

@final
class RowIds:
    rows: JaggedArray
    def splice(self, user: int, position: int, removed: int, inserted: int) -> list[int]: ...
    def put(self, user: int, position: int, row_id: int) -> None: ...
    def load(self, users: Int64s, ends: Int64s, ids: Int64s) -> None: ...
    def of(self, user: int, first: int, end: int | None = None) -> list[int]: ...
    def missing(self, user: int, first: int) -> tuple[list[int], int]: ...
    def drop_orphans(self, histories: Histories) -> list[int]: ...
