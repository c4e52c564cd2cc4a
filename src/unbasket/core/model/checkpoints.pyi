from unbasket.core.memory.jagged import JaggedArray

CHECKPOINT_EVERY: int

class Checkpoints:
    user_room: int
    size: int
    levels: JaggedArray

def worth_keeping(group: int, groups: int, stride: int) -> bool: ...
