"""The real Parquet files, against the figures of their README and of the paper's Table 1."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest

from unbasket.datasets import (
    Dataset,
    DatasetError,
    hold_out_last,
    load,
    published_path,
    statistics,
    write_published,
)
from unbasket.params import Params

real = cache(load)  # some take seconds


@pytest.mark.parametrize(
    ("name", "users", "items", "baskets", "purchases", "size", "repeats", "per_user"),
    [
        ("tafeng", 13949, 11997, 79423, 494017, 6.220, 6.220, 5.694),
        ("instacart", 19935, 7999, 158933, 1411006, 8.878, 8.878, 7.973),
        ("valuedshopper", 10000, 7874, 568573, 4935360, 8.680, 9.128, 56.857),
        ("completejourney", 2399, 19863, 148149, 1313713, 8.868, 8.868, 61.754),
        ("coop100", 100, 3420, 73664, 638315, 8.665, 8.665, 736.64),
    ],
)
def test_history_statistics(
    name: str,
    users: int,
    items: int,
    baskets: int,
    purchases: int,
    size: float,
    repeats: float,
    per_user: float,
) -> None:
    dataset = real(name)
    found = dataset.statistics()
    assert (found.users, found.items, found.baskets, found.purchases) == (users, items, baskets, purchases)
    assert round(found.basket_size, 3) == size
    assert round(found.basket_size_with_repeats, 3) == repeats
    assert round(found.baskets_per_user, 3) == per_user
    assert ("quantity" in dataset.history.columns) == (name == "valuedshopper")


@pytest.mark.parametrize(
    ("name", "users", "items", "size"),
    [
        ("tafeng", 13949, 10485, 6.591),
        ("valuedshopper", 9999, 5716, 9.324),
        ("completejourney", 2399, 9172, 9.935),
        ("coop100", 100, 475, 10.790),
    ],
)
def test_future_statistics(name: str, users: int, items: int, size: float) -> None:
    future = real(name).future
    assert future is not None
    found = statistics(future)
    assert (found.users, found.items, found.baskets) == (users, items, users)
    assert round(found.basket_size, 3) == size


def test_the_union_of_valuedshoppers_futures_is_one_basket_per_user() -> None:
    both, following = real("valuedshopper", future="union"), real("valuedshopper")
    assert both.future is not None
    assert following.future is not None
    assert "union" in both.notes
    assert "the next basket" in following.notes
    found = statistics(both.future)
    assert (found.users, found.baskets) == (9999, 9999)
    # counts of the README: 9999 baskets of 9.832 items with repeats, and 19984 of 10.021
    assert both.future["quantity"].sum() == pytest.approx(9999 * 9.832 + 19984 * 10.021, abs=20)
    assert both.future.join(following.future, on=["user", "basket", "item", "time"], how="semi").height == 93233


def test_instacart_has_no_future_until_one_is_held_out() -> None:
    instacart = real("instacart")
    assert instacart.future is None
    assert "hold_out_last" in instacart.notes
    split = hold_out_last(instacart)
    assert split.future is not None
    assert split.future["user"].n_unique() == 19826
    assert statistics(split.history).baskets == 158933 - 19826
    assert split.history.height + split.future.height == instacart.history.height


def test_the_papers_parameters_are_attached() -> None:
    assert real("tafeng").params == Params(group_size=7, basket_decay=0.9, group_decay=0.7, neighbors=300, alpha=0.7)
    assert real("instacart").params == Params(group_size=3, basket_decay=0.9, group_decay=0.7, neighbors=900, alpha=0.9)
    assert real("valuedshopper").params == Params(
        group_size=7, basket_decay=1.0, group_decay=0.6, neighbors=300, alpha=0.7
    )
    assert real("coop100").params is None


def published(folder: Path, **columns: list[object]) -> Path:
    frame = {
        "user_id": [1, 1, 1, 1],
        "basket_id": [5, 6, 7, 8],
        "position": [1, 2, 3, 4],
        "item_id": [1, 2, 3, 3],
        "quantity": [1, 1, 2, 3],
        "split": ["history", "history", "future", "future_later"],
        **columns,
    }
    path = folder / "tafeng.parquet"
    pl.DataFrame(frame, strict=False).write_parquet(path)
    return path


def test_the_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published(tmp_path)
    monkeypatch.setenv("UNBASKET_DATA", str(tmp_path))
    dataset = load("tafeng")
    assert dataset.history.rows() == [(1, 5, 1, 1, 1), (1, 6, 2, 2, 1)]
    assert dataset.future is not None
    assert dataset.future.rows() == [(1, 7, 3, 3, 2)]


def test_the_union_sums_quantities_of_the_same_item(tmp_path: Path) -> None:
    future = load(published(tmp_path), future="union").future
    assert future is not None
    assert future.rows() == [(1, 7, 3, 3, 5)]


def test_the_environment_comes_before_the_projects_own_files_but_does_not_hide_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = published_path("coop100")
    monkeypatch.setenv("UNBASKET_DATA", str(tmp_path))
    assert published_path("coop100") == own
    path = published(tmp_path)
    assert published_path("tafeng") == path
    assert load("tafeng").notes == "Read from tafeng.parquet. Future: the next basket."


def test_a_written_dataset_is_read_again(tmp_path: Path) -> None:
    """Ids and the order of baskets stay; the time becomes the position of a basket."""
    columns = ["user", "basket", "item", "time", "quantity"]
    history = [("a", 9, "x", 100, 1), ("a", 9, "y", 100, 2), ("a", 7, "x", 200, 1), ("b", 8, "y", 50, 1)]
    future = [("a", 5, "z", 150, 3)]  # earlier than the history by its time, and still the future
    parts = [pl.DataFrame(rows, columns, orient="row") for rows in (history, future)]
    write_published(Dataset("own", parts[0], parts[1]), path := tmp_path / "own.parquet")
    again = load(path)
    assert again.history.rows() == [
        ("a", 9, "x", 1, 1),
        ("a", 9, "y", 1, 2),
        ("a", 7, "x", 2, 1),
        ("b", 8, "y", 1, 1),
    ]
    assert again.future is not None
    assert again.future.rows() == [("a", 5, "z", 3, 3)]


def test_a_real_dataset_survives_being_written(tmp_path: Path) -> None:
    tafeng = load("tafeng")
    write_published(tafeng, path := tmp_path / "tafeng.parquet")
    again = load(path)
    assert again.history.equals(tafeng.history)
    assert tafeng.future is not None
    assert again.future is not None
    assert again.future.equals(tafeng.future)


def test_a_missing_value_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="row 3: a value is missing"):
        load(published(tmp_path, item_id=[1, 2, None, 3]))


def test_an_unknown_choice_of_future_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="not 'last'"):
        load(published(tmp_path), future="last")  # type: ignore[arg-type]
