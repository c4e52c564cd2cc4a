from unbasket.core.arrays import Int64s

def smallest(keys: list[int], k: int, order: Int64s) -> list[int]: ...

class TopN:
    count: int
    room: int
    def leftovers(self) -> int: ...
