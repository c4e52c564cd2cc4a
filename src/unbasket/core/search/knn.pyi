class Scan:
    row_room: int
    room: int
    found: int
    def leftovers(self) -> int: ...

class NearestNeighbors:
    scan: Scan
    helping: list[Scan]
    def leftovers(self) -> int: ...
