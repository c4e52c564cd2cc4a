"""`load`: datasets by name and by path."""

from pathlib import Path

import pytest

from unbasket.datasets import PUBLISHED, DatasetError, load


def test_load_takes_a_plain_table_with_or_without_time(tmp_path: Path) -> None:
    path = tmp_path / "shop.csv"
    path.write_text("user,basket,item,time\n1,1,5,20\n1,2,5,10\n")
    assert load(path).history["basket"].to_list() == [2, 1]
    path.write_text("user,basket,item\n1,1,5\n1,2,5\n")
    assert load(path).history["basket"].to_list() == [1, 2]


def test_a_missing_dataset_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DatasetError, match=f"tafang: neither a file nor one of the datasets {', '.join(PUBLISHED)}"):
        load("tafang")
    monkeypatch.setenv("UNBASKET_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match=r"UNBASKET_DATA names .*nowhere, which is not a folder"):
        load("tafeng")
