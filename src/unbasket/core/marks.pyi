from unbasket.core.rows import Rows

MARK_EVERY: int

class Marks:
    user_room: int
    size: int
    levels: Rows

def worth_keeping(group: int, groups: int, stride: int) -> bool: ...
