import numpy as np
import numpy.typing as npt

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.index.events import Live

class Baskets:
    def __init__(
        self,
        keys: Int64s,
        are_texts: npt.NDArray[np.uint8],
        times: Int64s,
        sizes: Int64s,
        opens: npt.NDArray[np.uint8],
    ) -> None: ...

def load(
    live: Live,
    baskets: Baskets,
    users: Int64s,
    basket_ends: Int64s,
    item_ends: Int64s,
    items: Codes,
    purchases: Codes,
) -> None: ...
