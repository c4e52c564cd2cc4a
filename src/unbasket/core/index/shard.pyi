from unbasket.core.memory.jagged import JaggedArray

class Shard:
    vectors: JaggedArray
    postings: JaggedArray
    size: int
    end: int
    def __init__(self, size: int) -> None: ...
