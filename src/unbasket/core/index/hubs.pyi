class Hubs:
    size: int
    hub_count: int
    hub_room: int
    entry_count: int
    item_room: int
    item_count: int
    def __init__(self, size: int) -> None: ...
