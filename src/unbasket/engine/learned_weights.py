"""The weights that a model has learned: alpha, and the items that are bought again most and least readily."""

import numpy as np

from unbasket.core.model import FACTOR_ONE, ONE
from unbasket.domain.results import ItemFactor, LearnedWeights
from unbasket.engine.model import Model

MIN_BUYERS = 20  # of an item that is listed: fewer would say too much about a person


def learned_weights(model: Model, n: int) -> LearnedWeights | None:
    """Return alpha, the users behind it, and n items with the largest and the smallest factors; ties by id."""
    with model.lock.reading:
        state, sums = model.state, model.state.sums
        if sums is None:
            return None
        (users, *_), _ = sums.sums([])
        alpha = sums.alpha() / ONE
        factors, buyers = sums.factors()
        listed = np.flatnonzero(buyers >= MIN_BUYERS)
        if state.params.repurchase is None:
            listed = listed[:0]
        order = state.items.labels[listed]

        def found(codes: np.ndarray) -> tuple[ItemFactor, ...]:
            return tuple(
                ItemFactor(state.items.names[code], int(factors[code]) / FACTOR_ONE, int(buyers[code]))
                for code in codes.tolist()
            )

        most = listed[np.lexsort((order, -factors[listed]))[:n]]
        least = listed[np.lexsort((order, factors[listed]))[:n]]
        return LearnedWeights(alpha, users, found(most), found(least))
