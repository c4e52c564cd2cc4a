"""The version: pyproject.toml is its only source."""

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.cli.running import run

import unbasket as ub

VERSION = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]["version"]


def test_the_version() -> None:
    assert ub.__version__ == VERSION
    assert run("--version") == f"unbasket {VERSION}\n"


def test_an_import_does_not_look_it_up() -> None:
    code = "import importlib.metadata as m; m.version = None; import unbasket; print(unbasket.Params().alpha)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
