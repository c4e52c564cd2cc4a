"""The products of the generated shop."""

from unbasket.datasets import SENSITIVE_CATEGORIES, generate


def test_products_have_readable_distinct_names() -> None:
    items = generate(1, items=3_000).items
    assert items is not None
    assert items.height == items["name"].n_unique() == items["item"].n_unique() == 3_000
    assert "Oat milk 1 l" in items["name"]
    assert set(SENSITIVE_CATEGORIES) < set(items["category"])
