"""A core that is older than its sources is not imported; the error says how to build it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/unbasket"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    shutil.copytree(SOURCE, tmp_path / "unbasket", ignore=shutil.ignore_patterns("__pycache__", "data", "web"))
    return tmp_path / "unbasket"


def imported(clone: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"PYTHONPATH": str(clone.parent)}
    program = "import unbasket; print(unbasket.__file__, len(unbasket.Recommender()))"
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, cwd=clone
    )


def test_a_core_that_was_built_is_imported(clone: Path) -> None:
    assert imported(clone).stdout == f"{clone / '__init__.py'} 0\n"


def test_a_changed_source_is_an_error(clone: Path) -> None:
    with (clone / "core/memory/jagged.pyx").open("a") as source:
        source.write("\n")
    assert "its sources have changed since: run `make build`" in imported(clone).stderr


def test_a_core_that_was_never_built_is_an_error(clone: Path) -> None:
    (clone / "core/.build_fingerprint").unlink()
    assert "is not compiled" in imported(clone).stderr


def test_a_package_without_sources_is_imported(clone: Path) -> None:
    for kind in ("*.pyx", "*.pxd", "*.h", ".build_fingerprint"):
        for file in (clone / "core").rglob(kind):
            file.unlink()
    assert imported(clone).returncode == 0
