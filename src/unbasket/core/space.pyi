class FoldSpace:
    room: int
    count: int
    groups: int
