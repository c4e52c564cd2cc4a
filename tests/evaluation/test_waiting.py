"""The line that says how far work is. In a notebook, the example notebook shows it."""

import io
import sys

import pytest

from unbasket.evaluation import waiting
from unbasket.evaluation.waiting import progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def attached(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal at standard error. Not a fixture: pytest takes standard error back after those."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def work() -> None:
    with progress_line("trials") as progress:
        for done in range(1, 1501):
            progress(done, 1500)


def test_a_terminal_shows_the_line_and_is_left_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    monkeypatch.setattr(waiting, "_SECONDS", -1)
    work()
    lines = terminal.getvalue().split("\r")
    assert lines[1] == "trials …\x1b[K"
    assert lines[-2:] == ["trials: 1,500 of 1,500\x1b[K", "\x1b[K"]


def test_a_thousand_steps_are_not_a_thousand_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    monkeypatch.setattr(waiting, "_SECONDS", 3600)
    work()
    assert terminal.getvalue() == "\rtrials …\x1b[K\r\x1b[K"


def test_the_line_goes_away_when_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attached(monkeypatch)
    with pytest.raises(KeyboardInterrupt), progress_line("trials"):
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_file_gets_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr() == ("", "")
