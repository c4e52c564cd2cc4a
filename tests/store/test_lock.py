"""The writer lock between processes. See also `test_links.py` and `test_loss.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.store.test_faults import digest_of

import unbasket as ub
from unbasket.errors import (
    StoreLockedError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


_OPEN = """
import sys
from pathlib import Path
from unbasket.errors import StoreLockedError
from unbasket.store.lock import WriterLock
try:
    lock = WriterLock(Path(sys.argv[1]))
except StoreLockedError as error:
    sys.exit(f"locked: {error}")
print("free", flush=True)
sys.stdin.read()
"""


def _other_process(path: Path) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", _OPEN, path], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_two_processes(path: Path) -> None:
    with ub.open(path) as engine:
        with pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
            ub.open(path)
        with _other_process(path) as other:
            _, message = other.communicate()
        assert f"locked: {path} is open for writing in another place (process {os.getpid()})" in message
        engine.learn("ann", ["milk"], basket=1)
        assert digest_of(path) == engine.digest()
    with _other_process(path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "free\n"
        with pytest.raises(StoreLockedError):
            ub.open(path)
        other.communicate()
    with ub.open(path) as engine:
        assert engine.users() == ["ann"]
