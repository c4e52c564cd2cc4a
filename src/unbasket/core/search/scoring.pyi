from unbasket.core.util.topn import TopN

class Scorer:
    best: TopN
    item_room: int
    def leftovers(self) -> int: ...
