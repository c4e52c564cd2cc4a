"""Next-basket recommendations that learn a basket in microseconds and forget it completely.

    event -> history -> vector -> index -> recommendation
             (one user)           (all users)

`domain`        input and output types: ids, events, baskets as columns, results, and their validation
`engine`        the recommender in memory, by external id: `engine.recommender`, `engine.model`, `engine.state`
`core`          compiled, by internal code, without I/O:
  `core.model`    one user's history, and the fold that replays it from the change on
  `core.index`    the vectors of all users, updated in place by each event
  `core.search`   nearest neighbors, and the best items
`store`         the same engine in a file
`verifier`      checks what a shop has signed; one file that needs nothing of the rest
`residue`       searches files for forgotten data

Adapters, independent of each other: `service`, `client`, `spark`, `kafka`, `cli`, `datasets`, `evaluation`,
`reproduction`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unbasket.domain.events import Event, Forget, Learn
from unbasket.domain.privacy import PrivacyThreshold
from unbasket.domain.results import (
    AvailabilityChange,
    Basket,
    BasketShare,
    Explanation,
    Forgotten,
    ItemCount,
    ItemFactor,
    Learned,
    LearnedWeights,
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
    BusyError,
    ClosedError,
    DatasetError,
    DiskFullError,
    ErasureBlockedError,
    InvalidBasketError,
    InvalidEventError,
    InvalidFrameError,
    InvalidIdError,
    InvalidParamsError,
    InvalidReceiptError,
    InvalidRequestError,
    KafkaError,
    RetentionError,
    RollbackError,
    SparkError,
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
        """Import slow modules on first use, to keep `import unbasket` fast."""
        if name == "__version__":
            return import_module("importlib.metadata").version(__name__)
        if name in ("datasets", "evaluation"):
            return import_module(f"{__name__}.{name}")
        if name in ("evaluate", "tune"):
            return getattr(import_module(f"{__name__}.evaluation.api"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AvailabilityChange",
    "Basket",
    "BasketConflictError",
    "BasketShare",
    "BusyError",
    "ClosedError",
    "DatasetError",
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
    "ItemFactor",
    "KafkaError",
    "Learn",
    "Learned",
    "LearnedWeights",
    "Neighbor",
    "Params",
    "PrivacyThreshold",
    "Product",
    "Receipt",
    "Recommendation",
    "Recommender",
    "Renamed",
    "RetentionError",
    "RollbackError",
    "Sizes",
    "SparkError",
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


def __dir__() -> list[str]:
    """Return the public names alone."""
    return __all__
