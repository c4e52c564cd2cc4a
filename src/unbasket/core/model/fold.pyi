from unbasket.core.arrays import Codes

ONE: int

class Rule:
    group_size: int
    basket_decay: float
    group_decay: float
    varying: bool
    stride: int
    def __init__(
        self, group_size: int, basket_decay: float, group_decay: float, varying: bool, stride: int
    ) -> None: ...

class FoldWorkspace:
    room: int
    count: int
    groups: int

class Vector:
    def __init__(self, items: Codes, weights: Codes) -> None: ...
    def __len__(self) -> int: ...
    @property
    def items(self) -> Codes: ...
    @property
    def weights(self) -> Codes: ...
