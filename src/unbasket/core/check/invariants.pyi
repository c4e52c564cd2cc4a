from unbasket.core.index.live_index import LiveIndex
from unbasket.core.model.fold import FoldWorkspace

STRUCTURES: tuple[str, ...]

def trace(live: LiveIndex, user: int) -> tuple[dict[int, int], int, int]: ...
def user_faults(
    live: LiveIndex, space: FoldWorkspace, user: int, elsewhere: dict[int, int], level: int, old_slot: int
) -> list[int]: ...
def mark_faults(live: LiveIndex, space: FoldWorkspace, user: int) -> int: ...
