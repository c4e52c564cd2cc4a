"""Next-basket recommendations that learn a basket in microseconds and forget it completely.

    event -> history -> vector -> index -> recommendation
             (one user)           (all users)

exchange    what comes in and goes out: ids, events, orders, results
engine      what people hold: events by external ids, questions, proofs (`engine.recommender`, `engine.state`)
core        the compiled path of an event: one user's history (`core.history`), the fold that replays it from the change
            on (`core.fold`), the live index that takes the vector over in place (`core.index`), the search that asks it
store       the same engine in a file

service, spark, cli, datasets, evaluation, reproduction: whoever uses the engine, each on its own
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbasket.domain.events import Event, Forget, Learn
from unbasket.domain.results import (
    AvailabilityChange,
    Basket,
    BasketShare,
    Explanation,
    Forgotten,
    ItemCount,
    Learned,
    Neighbor,
    Product,
    Recommendation,
    Renamed,
    Sizes,
    Verification,
)
from unbasket.engine.recommender import Recommender
from unbasket.errors import (
    BasketConflictError,
    ClosedError,
    DiskFullError,
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
    UncertainError,
    UnknownUserError,
)
from unbasket.params import Params
from unbasket.store import DurableRecommender, Erased, ErasedId, Receipt, open  # noqa: A004

if TYPE_CHECKING:
    __version__: str
    from unbasket import datasets, evaluation
    from unbasket.evaluation.api import evaluate, tune
else:

    def __getattr__(name: str) -> Any:
        """What costs time is looked up when it is first used, so that `import unbasket` stays quick."""
        if name == "__version__":
            return import_module("importlib.metadata").version(__name__)
        if name in ("datasets", "evaluation"):
            return import_module(f"{__name__}.{name}")
        if name in ("evaluate", "tune"):
            return getattr(import_module(f"{__name__}.evaluation.api"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Basket",
    "BasketConflictError",
    "BasketShare",
    "ClosedError",
    "DiskFullError",
    "DurableRecommender",
    "Erased",
    "ErasedId",
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
    "Renamed",
    "AvailabilityChange",
    "Sizes",
    "StoreCorruptError",
    "StoreError",
    "StoreLockedError",
    "StoreVersionError",
    "UnbasketError",
    "UncertainError",
    "UnknownUserError",
    "Verification",
    "datasets",
    "evaluate",
    "evaluation",
    "open",
    "tune",
]
