"""Next-basket recommendations that learn a basket in microseconds and forget it completely.

    event -> history -> vector -> index -> recommendation
             (one user)           (all users)

An event changes one user's history (`model.history`), the fold replays it from the change on into his vector
(`model.fold`), the live index takes the vector over in place (`neighbors.index`), and a recommendation asks the index
when it is wanted (`neighbors.search`). `update` has the compiled steps of that path; `memory` takes events down it
by external ids; `recommender` is the engine that users hold.
"""

from unbasket.errors import (
    InvalidBasketError,
    InvalidFrameError,
    InvalidIdError,
    InvalidParamsError,
    InvalidRequestError,
    UnbasketError,
    UnknownUserError,
)
from unbasket.params import Params
from unbasket.recommender import Recommender
from unbasket.results import (
    Basket,
    BasketShare,
    Explanation,
    Forgotten,
    ItemCount,
    Learned,
    Neighbor,
    Recommendation,
    Verification,
)

__all__ = [
    "Basket",
    "BasketShare",
    "Explanation",
    "Forgotten",
    "InvalidBasketError",
    "InvalidFrameError",
    "InvalidIdError",
    "InvalidParamsError",
    "InvalidRequestError",
    "ItemCount",
    "Learned",
    "Neighbor",
    "Params",
    "Recommendation",
    "Recommender",
    "UnbasketError",
    "UnknownUserError",
    "Verification",
]
