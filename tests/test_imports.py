"""Imports: heavy packages are loaded on first use, and `dir` shows the public names."""

import subprocess
import sys

import pytest

import unbasket as ub

HEAVY = ("cryptography", "matplotlib", "optuna", "pandas", "polars", "pyarrow", "rich", "typer")


def loaded(program: str) -> list[str]:
    """Return the heavy packages that a program has loaded at its end."""
    program += f"\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1:]


def test_the_package_and_an_engine_without_frames_load_none() -> None:
    program = """
import unbasket as ub
rec = ub.Recommender()
rec.learn("ann", ["milk"], basket=1)
rec.recommend("ann")
rec.forget("ann")
rec.verify()
"""
    assert loaded(program) == [""]


def test_a_frame_loads_polars() -> None:
    program = """
import unbasket as ub
try:
    ub.Recommender().fit("no frame")
except ub.InvalidFrameError:
    pass
"""
    assert loaded(program) == ["polars"]


@pytest.mark.parametrize("arguments", [["--help"], ["learn", "--help"], ["--version"]])
def test_the_command_line_loads_no_data_packages(arguments: list[str]) -> None:
    program = f"""
from unbasket.cli import app
try:
    app({arguments})
except SystemExit:
    pass
"""
    [names] = loaded(program)
    assert "polars" not in names
    assert "cryptography" not in names
    assert "typer" in names


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert dir(ub) == sorted(ub.__all__)
    assert all(hasattr(ub, name) for name in dir(ub))


def test_the_errors_of_the_library_are_public() -> None:
    assert {"BusyError", "DatasetError", "RetentionError", "SparkError"} <= set(ub.__all__)
