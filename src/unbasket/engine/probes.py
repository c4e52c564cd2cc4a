"""Queries under a privacy threshold: the part of a vector that finds neighbors, and the factors that count."""

from unbasket.core.index import Index
from unbasket.core.model import Vector
from unbasket.domain.privacy import PrivacyThreshold


def common_part(vector: Vector, index: Index, privacy: PrivacyThreshold) -> Vector:
    """Return the items of a vector that enough users have, of those who may be neighbors."""
    items, weights = vector.items, vector.weights
    is_common = index.holder_counts(items) >= privacy.buyers
    return Vector(items[is_common], weights[is_common])


def least_buyers(privacy: PrivacyThreshold | None) -> int:
    """Return how many buyers an item needs for its learned factor to count: that of a rare item tells about them."""
    return 0 if privacy is None else privacy.buyers
