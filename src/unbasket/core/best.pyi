class Best:
    count: int
    room: int
    def leftovers(self) -> int: ...
