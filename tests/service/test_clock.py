"""The clock of tokens: it never goes back, not even over a restart."""

import time
from pathlib import Path

import pytest
import structlog

from unbasket.service.clock import Clock

NOW = 1_800_000_000.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shop.db-clock"


def set_clock(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(time, "time", lambda: seconds)


def test_the_time_stands_still_while_the_clock_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(None)
    for seconds, expected in ((NOW, NOW), (NOW - 100, NOW), (NOW - 1, NOW), (NOW + 5, NOW + 5)):
        set_clock(monkeypatch, seconds)
        assert clock.now() == expected


def test_the_highest_time_survives_a_restart(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, NOW)
    Clock(file).keep()
    assert file.name == "shop.db-clock"
    assert file.stat().st_mode & 0o777 == 0o600
    set_clock(monkeypatch, NOW - 1_000_000)
    assert Clock(file).now() == NOW
    before = file.read_bytes()
    Clock(file).keep()
    assert file.read_bytes() == before == b"1800000000\n"


@pytest.mark.parametrize("content", [b"", b"yesterday", b"\xff", b"nan"])
def test_a_damaged_file_is_reported_and_replaced(file: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(content)
    set_clock(monkeypatch, NOW)
    with structlog.testing.capture_logs() as lines:
        clock = Clock(file)
    assert [line["event"] for line in lines] == ["the highest time seen could not be read"]
    assert clock.now() == NOW
    clock.keep()
    assert file.read_bytes() == b"1800000000\n"


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as lines:
        Clock(tmp_path / "missing" / "shop.db-clock").keep()
    assert [line["event"] for line in lines] == ["the highest time seen could not be written"]


def test_a_clock_that_went_back_is_logged_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(file)
    set_clock(monkeypatch, NOW)
    clock.keep()
    with structlog.testing.capture_logs() as lines:
        for seconds in (NOW - 30, NOW - 3_600, NOW - 3_599, NOW + 1, NOW - 3_600):
            set_clock(monkeypatch, seconds)
            clock.keep()
    assert [line["seconds"] for line in lines] == [3_600, 3_601]
