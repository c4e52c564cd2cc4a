class FoldWorkspace:
    room: int
    count: int
    groups: int
