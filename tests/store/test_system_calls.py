"""A forget, a backup and a compaction are killed at each system call: nothing is lost, and nothing forgotten is found.

A scenario across all modules of the store. strace kills the process (`make test-slow` installs it).
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.store.traced_process import EARLIER, HELD, PARAMS, STEPS, VICTIM, user
from tests.store.traffic import found_in, replayed

import unbasket as ub
from unbasket.domain.events import Event
from unbasket.store import audit
from unbasket.store.opening import back_up

CALLS = (
    "write,pwrite64,ftruncate,fallocate,fsync,fdatasync,sync_file_range,openat,close,fcntl,flock,"
    "mkdir,rmdir,rename,unlink,unlinkat,chmod,fchmod"
)
"""Calls that change a file or a lock. Between two of them the files stay as they are."""


class Outcome(NamedTuple):
    """The exit code of a traced process, how many of its steps were acknowledged, and the calls that it made."""

    code: int
    acknowledged: int
    calls: Counter[str]


class Tracer:
    """A process that acts in forks of itself under strace; see `traced_process`."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.store.traced_process"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, action: str, folder: Path, inject: str | None) -> Outcome:
        """Carry an action out on the database in a folder; `inject` is strace's description of a fault."""
        os.mkfifo(folder / "go")
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{action} {folder}\n")
        self.process.stdin.flush()
        pid = self.process.stdout.readline().split()[1]
        log = folder.with_name("calls")
        with (folder / "go").open("wb", buffering=0) as go:  # when the fork has opened the other end
            faults = [] if inject is None else ["-e", f"inject={inject}"]
            line = ["strace", "-f", "-p", pid, "-o", str(log), "-e", f"trace={CALLS}", *faults]
            with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as strace:
                assert strace.stderr is not None
                said = strace.stderr.readline()
                assert "attached" in said, said
                go.write(b"!")
                code = int(self.process.stdout.readline().split()[1])
        calls = Counter(re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE))
        return Outcome(code, (folder / "done").stat().st_size, calls)

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def tracer() -> Iterator[Tracer]:
    tracer = Tracer()
    yield tracer
    tracer.close()


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """Return a folder with a database of forgotten and of held users."""
    folder = tmp_path / "template"
    folder.mkdir()
    with ub.open(folder / "shop.db", PARAMS) as engine:
        for event in EARLIER:
            engine.apply([event])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("action", list(STEPS))
def test_a_kill_at_each_system_call(tracer: Tracer, template: Path, tmp_path: Path, action: str) -> None:
    whole = tracer.run(action, shutil.copytree(template, tmp_path / "whole"), None)
    assert (whole.code, whole.acknowledged) == (0, len(STEPS[action]))
    assert whole.calls["fdatasync"] > 2
    kills = 0
    for call, count in whole.calls.items():
        for number in range(1, count + 1):
            folder = shutil.copytree(template, tmp_path / f"{call}-{number}" / "files")
            outcome = tracer.run(action, folder, f"{call}:signal=KILL:when={number}")
            assert outcome.code in (0, -signal.SIGKILL), (call, number)
            kills += outcome.code != 0
            check(action, folder, outcome.acknowledged)
            shutil.rmtree(folder.parent)
    assert kills >= 0.9 * sum(whole.calls.values())  # the last calls may come in another order


def check(action: str, folder: Path, acknowledged: int) -> None:
    """Check that all that was acknowledged is there, before and after opening, and that nothing forgotten is."""
    scratch = folder.with_name("patterns")
    forgotten = {user(number) for number in range(HELD, HELD + 30)}
    if action == "forget" and acknowledged:
        forgotten.add(VICTIM)
    assert found_in(folder, forgotten, scratch) == set()
    steps = STEPS[action]
    with ub.open(folder / "shop.db") as engine:
        possible = [
            replayed(engine, [[event] for event in [*EARLIER, *steps[:count]]]).digest()
            for count in states(acknowledged, steps)
        ]
        assert engine.digest() in possible
        assert engine.verify().ok
        assert audit(engine.receipts()).ok
        digest, is_held = engine.digest(), VICTIM in engine
    if action == "backup":  # the next one removes what the kill has left
        (folder / "copy.db").unlink(missing_ok=True)
        back_up(folder / "shop.db", folder / "copy.db")
        assert [file.name for file in folder.glob("copy*")] == ["copy.db"]
        with ub.open(folder / "copy.db", read_only=True) as copy:
            assert copy.digest() == digest
    assert found_in(folder, forgotten if is_held else forgotten | {VICTIM}, scratch) == set()


def states(acknowledged: int, steps: list[Event]) -> range:
    """Return how many steps may be there: those that were acknowledged, and perhaps the next."""
    return range(acknowledged, min(acknowledged + 1, len(steps)) + 1)
