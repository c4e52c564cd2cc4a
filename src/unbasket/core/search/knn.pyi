class Scan:
    row_room: int
    room: int
    found: int
    def residue(self) -> int: ...

class NearestNeighbors:
    scan: Scan
    helping: list[Scan]
    def residue(self) -> int: ...
