from unbasket.core.rows import Rows

class Part:
    vectors: Rows
    postings: Rows
    size: int
    end: int
    def __init__(self, size: int) -> None: ...
