from unbasket.core.rows import Rows

UNTIMED: int

class Histories:
    baskets: Rows
    items: Rows
    splices: Rows
    item_room: int
    notes_changes: bool
    def count(self, user: int) -> int: ...
    def find(self, user: int, key: int, is_text: bool) -> int: ...
    def read(self, user: int, first: int, end: int) -> list[tuple[int, bool, int, list[int], bool]]: ...
    def take_changes(self) -> list[tuple[int, int, int, int]]: ...
