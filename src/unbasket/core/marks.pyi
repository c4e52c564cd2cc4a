from unbasket.core.pool import Pool

MARK_EVERY: int

class Marks:
    user_room: int
    size: int
    levels: Pool

def worth_keeping(group: int, groups: int, stride: int) -> bool: ...
