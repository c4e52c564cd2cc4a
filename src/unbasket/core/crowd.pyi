class Crowd:
    size: int
    count: int
    records: int
    age: int
    member_count: int
    user_room: int
    item_room: int
    def __init__(self, size: int) -> None: ...
