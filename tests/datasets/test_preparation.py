"""Preparation: from raw downloads, made here in the formats of the sources, to files that `load` finds."""

from pathlib import Path

import polars as pl
import pytest
from tests.datasets.test_published import real
from tests.datasets.test_raw import coop, instacart, pair, purchase, shoppers, tafeng

from unbasket.datasets import DatasetError, load, prepare


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of prepared files."""
    path = tmp_path / "prepared"
    path.mkdir()
    monkeypatch.setenv("UNBASKET_DATA", str(path))
    return path


def test_ta_feng_from_the_raw_file(folder: Path, tmp_path: Path) -> None:
    """The last day of a customer is the future."""
    steps: list[int] = []
    lines = ("11/1/2000,1,A,115,1,5,1,1,1", "11/2/2000,1,A,115,1,6,1,1,1", "11/1/2000,2,A,115,1,5,1,1,1")
    path = prepare("tafeng", tafeng(tmp_path, *lines), progress=lambda done, _: steps.append(done))
    assert path == folder / "tafeng.parquet"
    assert steps
    dataset = load("tafeng")
    assert dataset.history.rows() == [(1, 20001101, 5, 1), (2, 20001101, 5, 1)]
    assert dataset.future is not None
    assert dataset.future.rows() == [(1, 20001102, 6, 2)]
    assert dataset.notes == "Read from tafeng.parquet."  # it is not the paper's


def test_instacart_from_its_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The train orders are the future; of all users, a tenth is kept."""
    assert prepare("instacart", instacart(tmp_path)) == folder / "instacart.parquet"
    assert load("instacart").history.is_empty()
    monkeypatch.setattr("unbasket.datasets.raw.sampled", lambda *_: pl.lit(value=True))
    prepare("instacart", instacart(tmp_path))
    dataset = load("instacart")
    assert dataset.history.height == 4
    assert dataset.future is not None


def test_valued_shoppers_from_the_raw_file(folder: Path, tmp_path: Path) -> None:
    """Of all customers, the paper's share is kept."""
    rows = [purchase(user, day, f"2012-03-0{day}") for user in range(2000) for day in (1, 2)]
    assert prepare("valuedshopper", shoppers(tmp_path, *rows)) == folder / "valuedshopper.parquet"
    dataset = load("valuedshopper")
    assert dataset.future is not None
    assert 20 < dataset.history["user"].n_unique() == dataset.future["user"].n_unique() < 120


def test_coop_from_the_unpacked_file(folder: Path, tmp_path: Path) -> None:
    assert prepare("coop100", coop(tmp_path)) == folder / "coop100.parquet"
    dataset = load("coop100")
    assert dataset.history.rows() == [(1, "2007_01_02_0", 7, 1), (1, "2007_01_02_0", 9, 1), (2, "2008_01_01_0", 7, 1)]
    assert dataset.future is not None
    assert dataset.future.rows() == [(1, "2007_01_09_1", 12, 2)]


def test_a_pair_of_the_release_keeps_its_later_baskets(folder: Path, tmp_path: Path) -> None:
    history = pair(tmp_path, "1,1,30\n1,2,30\n", "1,3,20\n1,4,20\n1,4,30\n")
    assert prepare("valuedshopper", history) == folder / "valuedshopper.parquet"
    for choice, expected in (("next", [(1, 3, 20, 3)]), ("union", [(1, 3, 20, 3, 2), (1, 3, 30, 3, 1)])):
        dataset = load("valuedshopper", future=choice)  # type: ignore[arg-type]
        assert dataset.history.select("user", "basket", "item").rows() == [(1, 1, 30), (1, 2, 30)]
        assert dataset.future is not None
        assert dataset.future.rows() == expected


@pytest.mark.parametrize("name", ["completejourney", pytest.param("tafeng", marks=pytest.mark.needs("tafeng"))])
def test_the_release_gives_the_real_dataset(tmp_path: Path, name: str) -> None:
    """A dataset in the files of the release is the same after its preparation; Ta-Feng is recognized as the paper's."""
    columns = {"user": "CUSTOMER_ID", "basket": "ORDER_NUMBER", "item": "MATERIAL_NUMBER"}
    dataset = real(name)
    assert dataset.future is not None
    for part, frame in (("history", dataset.history), ("future", dataset.future)):
        frame.select(*columns).rename(columns).write_csv(tmp_path / f"{part}.csv")
    again = load(prepare("tafeng", tmp_path / "history.csv", tmp_path / "tafeng.parquet"))
    assert again.history.select(*columns).equals(dataset.history.select(*columns))
    assert again.future is not None
    assert again.future.select(*columns).equals(dataset.future.select(*columns))
    assert again.notes == (dataset.notes if name == "tafeng" else "Read from tafeng.parquet.")


def test_without_a_folder_the_file_is_written_where_one_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "mine.parquet"
    assert prepare("coop100", coop(tmp_path), named) == named
    assert named.is_file()
    monkeypatch.setattr("unbasket.datasets.preparation.data_folders", list)
    monkeypatch.chdir(folder)
    assert prepare("coop100", coop(tmp_path)) == Path("coop100.parquet")
    assert (folder / "coop100.parquet").is_file()


def test_bad_input_is_named_and_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="prepare are tafeng, instacart, valuedshopper, coop100, not 'netflix'"):
        prepare("netflix", tmp_path)
    (strange := tmp_path / "raw.csv").write_text("user\n1\n")
    with pytest.raises(DatasetError, match=r"raw\.csv: no column TRANSACTION_DT"):
        prepare("tafeng", strange)
    with pytest.raises(DatasetError, match=r"nowhere/coop100\.parquet: No such file"):
        prepare("coop100", coop(tmp_path), tmp_path / "nowhere" / "coop100.parquet")
    assert list(folder.iterdir()) == []
