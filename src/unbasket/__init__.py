"""Next-basket recommendations that learn a basket in microseconds and forget it completely.

    event -> history -> vector -> index -> recommendation
             (one user)           (all users)

An event changes one user's history (`model.history`), the fold replays it from the change on into his vector
(`model.fold`), the live index takes the vector over in place (`neighbors.index`), and a recommendation asks the index
when it is wanted (`neighbors.search`). `update` has the compiled steps of that path; `memory` takes events down it
by external ids; `recommender` is the engine that users hold; `store` makes it durable.
"""

from typing import TYPE_CHECKING

from unbasket.errors import (
    ClosedError,
    ErasureBlockedError,
    InvalidBasketError,
    InvalidEventError,
    InvalidFrameError,
    InvalidIdError,
    InvalidParamsError,
    InvalidReceiptError,
    InvalidRequestError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    StoreVersionError,
    UnbasketError,
    UnknownUserError,
)
from unbasket.events import Event, Forget, Learn
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
    Sizes,
    Verification,
)
from unbasket.store import DurableRecommender, Erased, Product, Receipt, open  # noqa: A004

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """The version is looked up when it is asked for, in what the installer wrote down."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version(__name__)


__all__ = [
    "Basket",
    "BasketShare",
    "ClosedError",
    "DurableRecommender",
    "Erased",
    "ErasureBlockedError",
    "Event",
    "Explanation",
    "Forget",
    "Forgotten",
    "InvalidBasketError",
    "InvalidEventError",
    "InvalidFrameError",
    "InvalidIdError",
    "InvalidParamsError",
    "InvalidReceiptError",
    "InvalidRequestError",
    "ItemCount",
    "Learn",
    "Learned",
    "Neighbor",
    "Params",
    "Product",
    "Receipt",
    "Recommendation",
    "Recommender",
    "Sizes",
    "StoreCorruptError",
    "StoreError",
    "StoreLockedError",
    "StoreVersionError",
    "UnbasketError",
    "UnknownUserError",
    "Verification",
    "open",
]
