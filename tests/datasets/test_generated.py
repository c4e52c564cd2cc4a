"""The generated shop: deterministic, and like a shop."""

from datetime import UTC, datetime

import polars as pl
import pytest

from unbasket.datasets import SENSITIVE_CATEGORIES, Dataset, DatasetError, generate


@pytest.fixture(scope="module")
def shop() -> Dataset:
    return generate(2_000, seed=1)


def test_a_seed_gives_the_same_shop_and_another_another() -> None:
    first, again, other = (generate(50, seed=seed).history for seed in (3, 3, 4))
    assert first.equals(again)
    assert not first.equals(other)


def test_the_first_baskets_for_a_seed_are_stable() -> None:
    history = generate(3, seed=7, baskets_per_user=2, basket_size=2).history
    assert history.head(3).rows() == [(1, 2, 75, 1714472290), (1, 2, 87, 1714472290), (1, 3, 75, 1717958874)]


def test_sizes_are_about_as_requested(shop: Dataset) -> None:
    found = shop.statistics()
    assert found.users == 2_000
    assert found.baskets_per_user == pytest.approx(20, rel=0.05)
    assert 5.5 < found.basket_size < 8


def test_rows_are_distinct_and_in_order(shop: Dataset) -> None:
    assert shop.history.equals(shop.history.sort("user", "time", "basket", "item"))
    assert shop.history.select("user", "basket", "item").is_duplicated().sum() == 0
    assert shop.history.group_by("basket").agg(pl.col("user", "time").n_unique()).max().row(0)[1:] == (1, 1)


def test_basket_ids_count_up_in_time(shop: Dataset) -> None:
    baskets = shop.history.unique("basket").sort("basket")
    assert baskets["basket"].to_list() == list(range(1, baskets.height + 1))
    assert baskets["time"].is_sorted()


def test_times_are_opening_hours_of_the_year(shop: Dataset) -> None:
    times = shop.history.unique("basket").select(pl.from_epoch("time").alias("time"))["time"]
    assert times.min() >= datetime(2024, 1, 1)  # type: ignore[operator]
    assert times.max() < datetime.fromtimestamp(1704067200 + 52 * 7 * 86400, UTC).replace(tzinfo=None)  # type: ignore[operator]
    assert set(times.dt.hour()) == set(range(7, 22))
    weekdays = times.dt.weekday().value_counts(sort=True)
    assert weekdays["time"][0] == 6  # Saturday


def test_few_items_make_most_purchases(shop: Dataset) -> None:
    counts = shop.history["item"].value_counts(sort=True)["count"]
    assert int(counts.head(len(counts) // 10).sum()) > 0.3 * int(counts.sum())


def test_users_buy_the_same_again(shop: Dataset) -> None:
    def repeats(share: float) -> float:
        history = generate(300, seed=1, items=3_000, repeat_share=share).history
        return 1 - history.select("user", "item").n_unique() / history.height

    assert repeats(0.9) > repeats(0.5) > repeats(0.0) + 0.2
    assert shop.history.select("user", "item").n_unique() < 0.5 * shop.history.height


def test_sensitive_categories_are_bought_by_some_households_only(shop: Dataset) -> None:
    assert shop.items is not None
    buyers = shop.history.join(shop.items, on="item").group_by("category").agg(share=pl.col("user").n_unique() / 2_000)
    shares = dict(buyers.iter_rows())
    for category, share in SENSITIVE_CATEGORIES.items():
        assert 0.02 < shares[category] <= share + 0.05
    assert shares["Dairy"] > 0.95


def test_more_users_than_a_block_and_progress() -> None:
    calls: list[tuple[int, int | None]] = []
    many = generate(10_500, baskets_per_user=1, basket_size=1, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(10_000, 10_500), (10_500, 10_500)]
    assert many.history["user"].to_list() == list(range(1, 10_501))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("users", 0),
        ("weeks", 0),
        ("baskets_per_user", 0.5),
        ("basket_size", 0),
        ("items", 0),
        ("repeat_share", 2),
    ],
)
def test_an_impossible_shop_is_refused(argument: str, value: float) -> None:
    with pytest.raises(DatasetError, match=f"{argument} must be .* not {value}"):
        generate(**{argument: value})  # type: ignore[arg-type]


def test_products_have_readable_distinct_names() -> None:
    items = generate(1, items=3_000).items
    assert items is not None
    assert items.height == items["name"].n_unique() == items["item"].n_unique() == 3_000
    assert "Oat milk 1 l" in items["name"]
    assert set(SENSITIVE_CATEGORIES) < set(items["category"])
