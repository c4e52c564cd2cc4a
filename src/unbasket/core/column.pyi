from typing_extensions import Buffer

class Column(Buffer):
    count: int
    width: int
    def __init__(self, width: int, count: int = 0) -> None: ...
    def extended(self, count: int) -> Column: ...
