class Scan:
    row_room: int
    room: int
    found: int
    def leftovers(self) -> int: ...
