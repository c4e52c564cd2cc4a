"""The package as installed, outside of a clone and in any folder: a scenario that runs commands on all datasets."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unbasket

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package, with its compiled modules, into a folder near a `data` that is not the project's."""
    root = tmp_path_factory.mktemp("environment")
    (root / "data").mkdir()
    for name in ("instacart", "valuedshopper", "coop100"):
        (root / "data" / f"{name}.parquet").touch()
    unfinished = shutil.ignore_patterns("*.pyc*", "*.tmp.*")  # files that another test may be writing
    shutil.copytree(Path(unbasket.__file__).parent, root / "site-packages" / "unbasket", ignore=unfinished)
    return root / "site-packages"


def run(site: Path, *arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command of the installed package."""
    program = [sys.executable, "-P", "-c", "from unbasket.cli import app; app()", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(site)}
    return subprocess.run(program, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_tafeng_is_there_from_any_folder(site: Path, tmp_path: Path) -> None:
    evaluated = run(site, "evaluate", "tafeng", "--json", cwd=tmp_path)
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["users"] == 13_949
    tuned = run(site, "tune", "tafeng", "--trials", 1, "--json", cwd=tmp_path)
    assert tuned.returncode == 0, tuned.stderr
    assert json.loads(tuned.stdout)["trials"] == 1


@pytest.mark.parametrize("name", ["instacart", "valuedshopper", "coop100"])
def test_a_dataset_of_a_clone_is_one_helpful_line(site: Path, name: str) -> None:
    """Even in the clone itself: it is not the clone's package that runs."""
    refused = run(site, "evaluate", name, cwd=REPOSITORY)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"Error: {name}.parquet is not here: it is in the folder data/ of the repository, not in the installed "
        "package. Set UNBASKET_DATA to a folder that holds it, or make it from the raw download as docs/datasets.md "
        "says.\n"
    )


def test_reproduce_leaves_out_datasets_without_files(site: Path, tmp_path: Path) -> None:
    made = run(site, "reproduce", "--only", "table1", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "1/1 table1, tafeng" in made.stderr
    assert "instacart is left out: instacart.parquet is not here" in made.stderr
    report = (tmp_path / "reproduction" / "report.html").read_text()
    assert "13,949 / 13,949" in report
    assert "<li>valuedshopper.parquet is not here" in report
