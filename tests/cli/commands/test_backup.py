"""`unbasket backup`."""

import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import PROGRAM, error, files_with, interruptible, run

import unbasket as ub


def test_backup(db: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    assert json.loads(run("backup", target, "--db", db, "--json"))["bytes"] > 0
    with ub.open(target, read_only=True) as copy, ub.open(db, read_only=True) as rec:
        assert copy.digest() == rec.digest()
    assert "backup.db exists" in error("backup", target, "--db", db)
    assert "Error: " in error("backup", tmp_path / "no" / "backup.db", "--db", db)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Return a database whose backup takes a second or so."""
    path = tmp_path / "shop" / "shop.db"
    path.parent.mkdir()
    with ub.open(path) as rec:
        rec.fit(pl.DataFrame({"user": "the first customer", "basket": range(150_000), "item": "milk"}))
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups" / "monday.db"


def start(db: Path, target: Path) -> subprocess.Popen[str]:
    """Start a backup, and wait until the copy has some rows."""
    line = [*PROGRAM, "backup", str(target), "--db", str(db)]
    before = files_with("the first customer", target.parent)
    pipe = subprocess.PIPE
    process = subprocess.Popen(line, stdout=pipe, stderr=pipe, text=True, **interruptible())
    while set(files_with("the first customer", target.parent)) <= set(before):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_nothing(large: Path, target: Path, number: signal.Signals) -> None:
    process = start(large, target)
    process.send_signal(number)
    assert process.communicate() == ("", "")
    assert process.returncode == 130
    assert list(target.parent.iterdir()) == []


def test_an_ignored_signal_stays_ignored(db: Path, target: Path) -> None:
    """As under `nohup`."""
    code = f"import os, signal; from unbasket.cli import app; os.kill(os.getpid(), {int(signal.SIGHUP)}); app()"
    line = [PROGRAM[0], "-c", code, "backup", str(target), "--db", str(db)]
    ignoring = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    subprocess.run(line, check=True, capture_output=True, preexec_fn=ignoring)
    assert target.exists()


def test_leftovers_of_a_kill_are_removed_by_the_next(large: Path, target: Path) -> None:
    """They are in a folder for their owner alone, whose name begins with that of the copy; one in use stays."""
    killed = start(large, target)
    killed.kill()
    killed.communicate()
    [left] = target.parent.iterdir()
    assert left.name.startswith("monday.db-partial-")
    assert left.stat().st_mode & 0o777 == 0o700
    running = start(large, target)
    [used] = target.parent.iterdir()
    assert used != left
    running.send_signal(signal.SIGSTOP)
    other = target.with_name("monday.db-partial-as_it_is")  # others may enter it: it is not one of ours
    other.mkdir()
    run("backup", target, "--db", large)
    assert set(target.parent.iterdir()) == {target, used, other}
    running.send_signal(signal.SIGCONT)
    running.communicate()
    assert set(target.parent.iterdir()) == {target, other}


def test_planted_files_receive_nothing(db: Path, target: Path, tmp_path: Path) -> None:
    """Another user who may write to the folder can't choose where purchases go."""
    planted = [target.with_name(f"monday.db-partial{ending}") for ending in ("", "-wal", "-shm", "-journal")]
    for file in planted:
        file.symlink_to(tmp_path / f"stolen{file.name}")
    run("backup", target, "--db", db)
    assert files_with("ann", target.parent) == ["./monday.db"]
    assert list(tmp_path.glob("stolen*")) == []


def test_a_full_disk_names_the_copy(large: Path, target: Path) -> None:
    line = [*PROGRAM, "backup", str(target), "--db", str(large)]
    limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))  # noqa: E731
    done = subprocess.run(line, capture_output=True, text=True, check=False, preexec_fn=limited)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {target}: ")
    assert str(large) not in done.stderr
    assert os.listdir(target.parent) == []
