class Rule:
    group_size: int
    basket_decay: float
    group_decay: float
    varying: bool
    stride: int
    def __init__(
        self, group_size: int, basket_decay: float, group_decay: float, varying: bool, stride: int
    ) -> None: ...
