"""`unbasket reproduce` at the terminal."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unbasket.cli import app
from unbasket.reproduction import DATASETS, EXPERIMENTS

runner = CliRunner()


def test_writes_a_report_and_continues_it(tmp_path: Path) -> None:
    command = ["reproduce", "--quick", "--only", "figure-a", "--dataset", "single-item", "--out", str(tmp_path)]
    first = runner.invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "1/1 figure-a, single-item" in first.output
    for name in ("report.html", "figure-a.csv", "figure-a.tex", "figure-a.svg", "figure-a.png"):
        assert (tmp_path / name).stat().st_size > 0
    assert "stored already" not in first.output
    assert "stored already" in runner.invoke(app, command).output
    assert "stored already" not in runner.invoke(app, [*command, "--seed", "1"]).output


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    result = runner.invoke(app, ["reproduce", "--only", "table3", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "experiment must be one of table1, table2" in result.output
    assert "Traceback" not in result.output


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in sys.modules if name.startswith("unbasket.reproduction")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys.modules["unbasket"], "reproduction", None, raising=False)
    monkeypatch.delattr(sys.modules["unbasket"], "reproduction")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = runner.invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "pip install 'unbasket[reproduce]'" in result.output


def test_help_names_every_part_and_dataset() -> None:
    text = runner.invoke(app, ["reproduce", "--help"], env={"COLUMNS": "200"}).output
    for name in (*EXPERIMENTS, *DATASETS):
        assert name in text
