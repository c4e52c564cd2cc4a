"""Purchases by their quantity: rows with 0, and returns."""

from pathlib import Path

import polars as pl
import pytest

from unbasket.datasets import Dataset, DatasetError, read_table
from unbasket.domain.returns import Returns


def read(folder: Path, *rows: str, header: str = "user,basket,item,time,quantity", skip_bad: bool = False) -> Dataset:
    path = folder / "sales.csv"
    path.write_text("\n".join((header, *rows)) + "\n", encoding="utf-8")
    time = "time" if "time" in header else None
    return read_table(path, time=time, quantity="quantity", skip_bad=skip_bad)


def baskets(dataset: Dataset) -> dict[tuple[object, object], set[object]]:
    found: dict[tuple[object, object], set[object]] = {}
    for user, basket, item in dataset.history.select("user", "basket", "item").iter_rows():
        found.setdefault((user, basket), set()).add(item)
    return found


def test_a_quantity_of_0_is_not_a_purchase(tmp_path: Path) -> None:
    shop = read(tmp_path, "1,1,milk,5,2", "1,1,tea,5,0", "1,2,tea,6,0")
    assert baskets(shop) == {(1, 1): {"milk"}}
    assert shop.returns == Returns(zero=2, taken_out=0, unmatched=0, undone=0)
    assert shop.history.columns == ["user", "basket", "item", "time"]


def test_within_a_basket_quantities_are_added_up(tmp_path: Path) -> None:
    milk, tea = ("1,1,milk,5,2", "1,1,milk,5,-1"), ("1,1,tea,5,3", "1,1,tea,5,-3")
    gas = ("1,1,gas,5,0.3", "1,1,gas,5,-0.1", "1,1,gas,5,-0.2")
    shop = read(tmp_path, *milk, *tea, *gas)
    assert baskets(shop) == {(1, 1): {"milk"}}
    assert shop.returns == Returns(zero=0, taken_out=4, unmatched=0, undone=2)


def test_a_return_is_taken_out_of_the_newest_earlier_basket(tmp_path: Path) -> None:
    shop = read(
        tmp_path, "1,1,milk,5,1", "1,2,milk,6,1", "1,2,tea,6,1", "1,C3,milk,7,-1", "1,4,milk,8,1", "2,1,milk,6,1"
    )
    assert baskets(shop) == {(1, "1"): {"milk"}, (1, "2"): {"tea"}, (1, "4"): {"milk"}, (2, "1"): {"milk"}}
    assert shop.returns == Returns(zero=0, taken_out=1, unmatched=0, undone=1)


def test_a_return_is_taken_out_of_several_baskets(tmp_path: Path) -> None:
    shop = read(tmp_path, "1,1,milk,5,3", "1,2,milk,6,1", "1,3,milk,7,-2")
    assert baskets(shop) == {(1, 1): {"milk"}}
    shop = read(tmp_path, "1,1,milk,5,3", "1,2,milk,6,1", "1,3,milk,7,-2", "1,4,milk,8,-2")
    assert baskets(shop) == {}
    assert shop.returns == Returns(zero=0, taken_out=2, unmatched=0, undone=2)


def test_unmatched_returns_are_counted(tmp_path: Path) -> None:
    shop = read(tmp_path, "1,1,milk,5,-1", "1,2,milk,6,1", "2,1,tea,5,-1", "3,1,rum,5,1", "3,2,rum,6,-2")
    assert baskets(shop) == {(1, 2): {"milk"}}
    assert shop.returns == Returns(zero=0, taken_out=0, unmatched=3, undone=1)


def test_without_times_the_order_of_the_file_counts(tmp_path: Path) -> None:
    header = "user,basket,item,quantity"
    shop = read(
        tmp_path, "1,9,milk,1", "1,9,tea,1", "1,8,milk,1", "1,7,tea,-1", "1,7,milk,-1", "1,6,gin,1", header=header
    )
    assert shop.history.rows() == [(1, 9, "milk", 1), (1, 6, "gin", 2)]


def test_a_return_in_another_file_of_the_folder(tmp_path: Path) -> None:
    header = "user,basket,item,time,quantity\n"
    (tmp_path / "may.csv").write_text(header + "1,1,milk,5,1\n1,1,tea,5,1\n")
    (tmp_path / "zjune.csv").write_text(header + "1,2,milk,6,-1\n")
    shop = read_table(tmp_path, time="time", quantity="quantity")
    assert baskets(shop) == {(1, 1): {"tea"}}


@pytest.mark.parametrize("quantity", ["", "many", "nan", "inf", "1;5"])
def test_a_quantity_that_is_no_number_is_named_or_skipped(tmp_path: Path, quantity: str) -> None:
    rows = ("1,1,milk,5,1", f"1,1,tea,5,{quantity}")
    with pytest.raises(DatasetError, match=r"line 3: no usable quantity in .*'quantity': "):
        read(tmp_path, *rows)
    assert read(tmp_path, *rows, skip_bad=True).skipped == 1


def test_quantities_of_other_files(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1, 1], "basket": [1, 1], "item": [[5], [6, 7]], "quantity": [0, 2]})
    frame.write_parquet(tmp_path / "shop.parquet")
    assert baskets(read_table(tmp_path / "shop.parquet", quantity="quantity")) == {(1, 1): {6, 7}}
    frame.with_columns(quantity=pl.lit([1])).write_parquet(tmp_path / "shop.parquet")
    with pytest.raises(DatasetError, match=r"column quantity holds List\(Int64\); a quantity is a number"):
        read_table(tmp_path / "shop.parquet", quantity="quantity")
