from unbasket.core.best import Best

class Ranking:
    best: Best
    item_room: int
    def leftovers(self) -> int: ...
