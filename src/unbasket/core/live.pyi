from unbasket.core.fold import Rule
from unbasket.core.history import Histories
from unbasket.core.index import Index
from unbasket.core.marks import Marks
from unbasket.core.rows import Rows
from unbasket.core.space import FoldSpace

LEARNED: int
TIED: int

class Live:
    histories: Histories
    marks: Marks
    index: Index
    space: FoldSpace
    rule: Rule
    items: Rows
    gone: Rows
    def __init__(self, histories: Histories, index: Index, rule: Rule) -> None: ...
    def admit(self, users: int, items: int) -> None: ...
    def learn(
        self, user: int, key: int, is_text: bool, row: int, time: int, items: list[int], search: bool
    ) -> tuple[int, int, int]: ...
    def learn_at(self, user: int, position: int, key: int, is_text: bool, time: int, items: list[int]) -> None: ...
    def comes_last(self, user: int, key: int, is_text: bool, time: int, search: bool) -> bool: ...
    def edit(self, user: int, position: int, items: list[int]) -> list[int]: ...
    def forget_basket(self, user: int, key: int, is_text: bool) -> tuple[int, int, list[int]]: ...
    def forget_item(
        self, user: int, first: int, end: int, item: int
    ) -> tuple[int, int, list[tuple[int, bool]], list[int]]: ...
    def forget_user(self, user: int) -> tuple[int, list[tuple[int, bool]], list[int]]: ...
