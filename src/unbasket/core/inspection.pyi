from unbasket.core.live import Live
from unbasket.core.space import FoldSpace

PLACES: tuple[str, ...]

def trace(live: Live, user: int) -> tuple[dict[int, int], int, int]: ...
def user_faults(
    live: Live, space: FoldSpace, user: int, elsewhere: dict[int, int], level: int, old_slot: int
) -> list[int]: ...
def mark_faults(live: Live, space: FoldSpace, user: int) -> int: ...
