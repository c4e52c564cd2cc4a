from unbasket.core.index.events import Live
from unbasket.core.model.workspace import FoldWorkspace

STRUCTURES: tuple[str, ...]

def trace(live: Live, user: int) -> tuple[dict[int, int], int, int]: ...
def user_faults(
    live: Live, space: FoldWorkspace, user: int, elsewhere: dict[int, int], level: int, old_slot: int
) -> list[int]: ...
def mark_faults(live: Live, space: FoldWorkspace, user: int) -> int: ...
