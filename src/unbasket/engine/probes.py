"""Probes: the part of a vector that neighbors are found by under a privacy threshold."""

from unbasket.core.index import Index
from unbasket.core.model import Vector
from unbasket.domain.privacy import PrivacyThreshold


def common_part(vector: Vector, index: Index, privacy: PrivacyThreshold) -> Vector:
    """Return the items of a vector that enough users have, of those who may be neighbors."""
    items, weights = vector.items, vector.weights
    is_common = index.holder_counts(items) >= privacy.buyers
    return Vector(items[is_common], weights[is_common])
