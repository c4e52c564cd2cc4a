"""The package as installed, outside of a clone and in any folder: a scenario that runs commands on all datasets."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unbasket
from unbasket.datasets import generate, hold_out_last, write_published

REPOSITORY = Path(__file__).parents[2]
NAMES = ("tafeng", "instacart", "valuedshopper", "coop100")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the package, with its compiled modules, into a folder near a `data` that is not the project's."""
    root = tmp_path_factory.mktemp("environment")
    (root / "data").mkdir()
    for name in NAMES:
        (root / "data" / f"{name}.parquet").touch()
    unfinished = shutil.ignore_patterns("*.pyc*", "*.tmp.*")  # files that another test may be writing
    shutil.copytree(Path(unbasket.__file__).parent, root / "site-packages" / "unbasket", ignore=unfinished)
    return root / "site-packages"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a small Ta-Feng."""
    folder = tmp_path_factory.mktemp("data")
    write_published(hold_out_last(generate(40, seed=1, baskets_per_user=6)), folder / "tafeng.parquet")
    return folder


def run(site: Path, *arguments: object, cwd: Path, data: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command of the installed package."""
    program = [sys.executable, "-P", "-c", "from unbasket.cli import app; app()", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(site), "UNBASKET_DATA": "" if data is None else str(data)}
    return subprocess.run(program, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_a_dataset_from_a_package_is_there_from_any_folder(site: Path, tmp_path: Path) -> None:
    evaluated = run(site, "evaluate", "completejourney", "--json", cwd=tmp_path)
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["users"] == 2_399


def test_a_dataset_of_the_named_folder_is_there_from_any_folder(site: Path, data: Path, tmp_path: Path) -> None:
    evaluated = run(site, "evaluate", "tafeng", "--json", cwd=tmp_path, data=data)
    assert evaluated.returncode == 0, evaluated.stderr
    assert json.loads(evaluated.stdout)["users"] == 39  # one has a single basket
    tuned = run(site, "tune", "tafeng", "--trials", 1, "--json", cwd=tmp_path, data=data)
    assert tuned.returncode == 0, tuned.stderr
    assert json.loads(tuned.stdout)["trials"] == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_dataset_is_one_helpful_line(site: Path, name: str) -> None:
    """Even in a clone that has the file: it is not the clone's package that runs."""
    refused = run(site, "evaluate", name, cwd=REPOSITORY)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"Error: {name}.parquet is not here: download ")
    assert f"then run: unbasket datasets prepare {name} " in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_reproduce_leaves_out_datasets_without_files(site: Path, data: Path, tmp_path: Path) -> None:
    made = run(site, "reproduce", "--only", "table1", cwd=tmp_path, data=data)
    assert made.returncode == 0, made.stderr
    assert "1/1 table1, tafeng" in made.stderr
    assert "instacart is left out: instacart.parquet is not here" in made.stderr
    report = (tmp_path / "reproduction" / "report.html").read_text()
    assert "13,949 / 40" in report
    assert "on 1 of the paper's 3 datasets</h2><p>Not among them: instacart, valuedshopper.</p>" in report
    assert "<li>valuedshopper.parquet is not here" in report


def test_reproduce_without_any_dataset_names_what_to_get(site: Path, tmp_path: Path) -> None:
    refused = run(site, "reproduce", "--only", "table1", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: tafeng.parquet is not here: download TaFang_history_NB.csv ")
    made = run(site, "reproduce", "--quick", "--only", "table1", "--only", "figure-c", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "on 0 of the paper's 3 datasets</h2>" in (tmp_path / "reproduction" / "report.html").read_text()
