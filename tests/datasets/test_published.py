"""Prepared Parquet files: made ones and, where they are, the real ones against their README and the paper's Table 1."""

from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from unbasket.datasets import (
    Dataset,
    DatasetError,
    MissingDatasetError,
    hold_out_last,
    load,
    published_path,
    statistics,
    write_published,
)
from unbasket.params import Params

real = cache(load)  # some take seconds


def needing(name: str, *figures: float) -> Any:
    """Return parameters of a test that is skipped without the dataset's file."""
    return pytest.param(name, *figures, marks=pytest.mark.needs(name))


@pytest.mark.parametrize(
    ("name", "users", "items", "baskets", "purchases", "size", "repeats", "per_user"),
    [
        needing("tafeng", 13949, 11997, 79423, 494017, 6.220, 6.220, 5.694),
        needing("instacart", 19935, 7999, 158933, 1411006, 8.878, 8.878, 7.973),
        needing("valuedshopper", 10000, 7874, 568573, 4935360, 8.680, 9.128, 56.857),
        ("completejourney", 2399, 19863, 148149, 1313713, 8.868, 8.868, 61.754),
        needing("coop100", 100, 3420, 73664, 638315, 8.665, 8.665, 736.64),
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
        needing("tafeng", 13949, 10485, 6.591),
        needing("valuedshopper", 9999, 5716, 9.324),
        ("completejourney", 2399, 9172, 9.935),
        needing("coop100", 100, 475, 10.790),
    ],
)
def test_future_statistics(name: str, users: int, items: int, size: float) -> None:
    future = real(name).future
    assert future is not None
    found = statistics(future)
    assert (found.users, found.items, found.baskets) == (users, items, users)
    assert round(found.basket_size, 3) == size


@pytest.mark.needs("valuedshopper")
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


@pytest.mark.needs("instacart")
def test_instacart_has_no_future_until_one_is_held_out() -> None:
    instacart = real("instacart")
    assert instacart.notes.startswith("Instacart as in the paper")
    assert instacart.future is None
    assert "hold_out_last" in instacart.notes
    split = hold_out_last(instacart)
    assert split.future is not None
    assert split.future["user"].n_unique() == 19826
    assert statistics(split.history).baskets == 158933 - 19826
    assert split.history.height + split.future.height == instacart.history.height


def published(folder: Path, name: str = "tafeng", **columns: list[object]) -> Path:
    frame = {
        "user_id": [1, 1, 1, 1],
        "basket_id": [5, 6, 7, 8],
        "position": [1, 2, 3, 4],
        "item_id": [1, 2, 3, 3],
        "quantity": [1, 1, 2, 3],
        "split": ["history", "history", "future", "future_later"],
        **columns,
    }
    path = folder / f"{name}.parquet"
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


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty folder `data/` of a checkout; no other folder is named."""
    module = tmp_path / "checkout" / "src" / "unbasket" / "datasets" / "published.py"
    monkeypatch.setattr("unbasket.datasets.published.__file__", str(module))
    monkeypatch.delenv("UNBASKET_DATA", raising=False)
    folder = tmp_path / "checkout" / "data"
    folder.mkdir(parents=True)
    return folder


def test_the_environment_comes_before_a_checkout_but_does_not_hide_it(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [published(checkout, "coop100"), published(checkout, "tafeng")]
    assert [published_path("coop100"), published_path("tafeng")] == own
    monkeypatch.setenv("UNBASKET_DATA", str(tmp_path))
    path = published(tmp_path, "tafeng")
    assert [published_path("coop100"), published_path("tafeng")] == [own[0], path]
    assert load("tafeng").notes == "Read from tafeng.parquet. Future: the next basket."


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(
    ("name", "download"),
    [
        ("tafeng", "TaFang_history_NB.csv and TaFang_future_NB.csv .* prepare tafeng TaFang_history_NB.csv"),
        ("instacart", "instacart-market-basket-analysis .* prepare instacart FOLDER"),
        ("valuedshopper", "acquire-valued-shoppers-challenge, .* prepare valuedshopper transactions.csv.gz"),
        ("coop100", "coop100.json.zip .* prepare coop100 coop100.json"),
    ],
)
def test_a_missing_file_is_named_with_its_download_and_the_command(name: str, download: str) -> None:
    with pytest.raises(MissingDatasetError, match=rf"^{name}\.parquet is not here: download .*{download}\. Or set UNB"):
        load(name)


@pytest.mark.parametrize("name", ["tafeng", "instacart", "valuedshopper", "coop100"])
def test_the_papers_parameters_are_attached(tmp_path: Path, name: str) -> None:
    expected = None if name == "coop100" else Params.paper(name)
    assert load(published(tmp_path, name)).params == expected


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


def test_later_baskets_are_written_after_the_future(tmp_path: Path) -> None:
    columns = ["user", "basket", "item", "time"]
    parts = [pl.DataFrame([(1, basket, item, 7)], columns, orient="row") for basket, item in ((9, 1), (8, 2), (5, 3))]
    write_published(Dataset("own", parts[0], parts[1]), path := tmp_path / "own.parquet", later=parts[2])
    following, union = load(path).future, load(path, future="union").future
    assert following is not None
    assert following.rows() == [(1, 8, 2, 2)]
    assert union is not None
    assert union.rows() == [(1, 8, 2, 2), (1, 8, 3, 2)]


@pytest.mark.parametrize("name", ["completejourney", needing("tafeng")])
def test_a_real_dataset_survives_being_written(tmp_path: Path, name: str) -> None:
    """All but the times, of which a basket keeps its position."""
    dataset = real(name)
    write_published(dataset, path := tmp_path / f"{name}.parquet")
    again = load(path)
    columns = ["user", "basket", "item"]
    assert again.history.select(columns).equals(dataset.history.select(columns))
    assert dataset.future is not None
    assert again.future is not None
    assert again.future.select(columns).equals(dataset.future.select(columns))
    assert again.history.filter(pl.col("time") < pl.col("time").shift().over("user")).is_empty()


def test_a_missing_value_is_refused_with_its_row(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="row 3: a value is missing"):
        load(published(tmp_path, item_id=[1, 2, None, 3]))


def test_an_unknown_choice_of_future_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="not 'last'"):
        load(published(tmp_path), future="last")  # type: ignore[arg-type]
