class Hubs:
    size: int
    count: int
    records: int
    member_count: int
    member_room: int
    item_room: int
    def __init__(self, size: int) -> None: ...
