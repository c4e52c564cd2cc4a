"""The figures that the paper publishes."""

_STATISTICS = {
    "tafeng": {"users": 13949, "items": 11997, "baskets": 79423, "basket_size": 6.2, "baskets_per_user": 5.7},
    "instacart": {"users": 19935, "items": 7999, "baskets": 158933, "basket_size": 8.9, "baskets_per_user": 8.0},
    "valuedshopper": {"users": 10000, "items": 7874, "baskets": 568573, "basket_size": 9.1, "baskets_per_user": 56.9},
}
"""Table 1. The average basket size of ValuedShopper counts an item as often as it is listed."""

METRICS = ("recall@10", "ndcg_paper@10", "recall@20", "ndcg_paper@20")
METRIC_NAMES = dict(zip(METRICS, ("Recall@10", "NDCG@10", "Recall@20", "NDCG@20"), strict=True))

_QUALITY = {
    "tafeng": {
        "baseline": (0.1298, 0.0847, 0.1859, 0.0816),
        "incremental": (0.1298, 0.0847, 0.1859, 0.0816),
        "decremental": (0.1297, 0.0847, 0.1856, 0.0817),
    },
    "instacart": {
        "baseline": (0.1709, 0.5789, 0.2291, 0.5037),
        "incremental": (0.1709, 0.5789, 0.2291, 0.5037),
        "decremental": (0.1710, 0.5788, 0.2291, 0.5035),
    },
    "valuedshopper": {
        "baseline": (0.1436, 0.4058, 0.2133, 0.3465),
        "incremental": (0.1436, 0.4058, 0.2133, 0.3465),
        "decremental": (0.1437, 0.4060, 0.2131, 0.3465),
    },
}

ADDITION_MS = 0.2
DELETION_MS = 1.0
"""The abstract: around 0.2 ms per addition, less than one millisecond per deletion; the state update alone."""

MICRO_BATCH_MS = 120.0
"""The micro-batch around each of those updates: the median in the authors' result files (117 to 125 ms)."""

TAFENG_UPDATE_MS, TAFENG_MICRO_BATCH_MS = 3.3, 196.0
"""The same files on Ta-Feng."""

DELETIONS_TO_ONE_PERCENT = 180
"""Section 6.3: the number of consecutive deletions after which the relative error reaches 1 %."""


def published_statistic(dataset: str, name: str) -> float | None:
    """Return a figure of Table 1, or None for a dataset that is not in it."""
    return _STATISTICS.get(dataset, {}).get(name)


def published_quality(dataset: str, model: str, metric: str) -> float | None:
    """Return a figure of Table 2, or None for a dataset or model that is not in it."""
    values = _QUALITY.get(dataset, {}).get(model)
    return None if values is None else values[METRICS.index(metric)]
