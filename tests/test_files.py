"""Files: readable by their owner alone, written atomically, and locked for changes of keys."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.running import run

import unbasket as ub
from unbasket import files


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """Leave the mode of files to the code under test."""
    former = os.umask(0)
    yield
    os.umask(former)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in sorted(folder.iterdir())}


# Files of a shop ------------------------------------------------------------------------------------------------


def test_a_database_and_the_files_of_sqlite(tmp_path: Path) -> None:
    with ub.open(tmp_path / "shop.db") as rec:
        rec.learn("ann", ["milk"], basket=1)
        beside = ("", "-keys", "-lock", "-shm", "-wal")
        assert modes(tmp_path) == {f"shop.db{suffix}": 0o600 for suffix in beside}


def test_backups_exports_receipts_and_keys(tmp_path: Path) -> None:
    db = tmp_path / "shop.db"
    with ub.open(db) as rec:
        rec.learn("ann", ["milk", "tea"], basket=1)
        rec.forget("ann", item="tea")
    run("backup", tmp_path / "backup.db", "--db", db)
    run("export", "ann", "--db", db, "--output", tmp_path / "ann.json")
    run("receipts", "export", tmp_path / "receipts.ndjson", "--db", db)
    run("keys", "add", "till", "--role", "write", "--db", db)
    run("spark", "from-db", "--db", db, "--output", tmp_path / "shop.parquet")
    written = modes(tmp_path)
    assert written.keys() >= {"backup.db", "ann.json", "receipts.ndjson", "shop.db-access.toml", "shop.parquet"}
    assert set(written.values()) == {0o600}


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    db = tmp_path / "shop.db"
    with ub.open(db) as rec:
        rec.learn("ann", ["milk"], basket=1)
    run("keys", "add", "till", "--role", "write", "--db", db)
    db.chmod(0o640)
    for name in ("shop.db-keys", "shop.db-access.toml", "shop.db-lock"):
        tmp_path.joinpath(name).chmod(0o400 if os.geteuid() == 0 else 0o600)  # root may write to read-only files
    before = modes(tmp_path)
    with ub.open(db) as rec:
        rec.learn("ann", ["tea"], basket=2)
        assert modes(tmp_path) == before | {"shop.db-wal": 0o640, "shop.db-shm": 0o640}
    run("keys", "remove", "till", "--db", db)
    assert modes(tmp_path) == before


# Atomic writes --------------------------------------------------------------------------------------------------


def test_a_write_that_fails_leaves_the_former_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    files.write(file, b"former")
    with pytest.raises(TypeError), files.replacing(file) as partial:
        partial.write_bytes(["no bytes"])  # type: ignore[arg-type]
    assert file.read_bytes() == b"former"
    assert modes(tmp_path) == {"file": 0o600}


def test_a_new_file_and_its_name_are_on_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content, then name, then the folder: in another order, a power loss could undo the write."""
    steps: list[tuple[str, str]] = []
    replace, fsync = os.replace, files.fsync

    def logged_replace(source: Path, target: Path) -> None:
        steps.append(("replace", target.name))
        replace(source, target)

    def logged_fsync(path: Path) -> None:
        steps.append(("sync", path.name))
        fsync(path)

    monkeypatch.setattr(os, "replace", logged_replace)
    monkeypatch.setattr(files, "fsync", logged_fsync)
    run("keys", "add", "till", "--role", "write", "--access", tmp_path / "access.toml")
    assert steps == [("sync", "access.toml"), ("replace", "access.toml"), ("sync", tmp_path.name)]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    link.symlink_to(file)
    for content in (b"first", b"second"):
        files.write(link, content)
        assert link.is_symlink()
        assert file.read_bytes() == content


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        files.write(pipe, b"through")
        assert reader.communicate()[0] == b"through"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_root_does_not_lock_out_the_owner(tmp_path: Path) -> None:
    file = tmp_path / "file"
    files.write(file, b"former")
    os.chown(file, 12345, 12346)
    files.write(file, b"new")
    assert (file.stat().st_uid, file.stat().st_gid, modes(tmp_path)) == (12345, 12346, {"file": 0o600})


# Concurrent changes ---------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from unbasket.cli import app
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    app(["keys", "add", f"{sys.argv[1]}-{number}", "--role", "write", "--access", sys.argv[2]], standalone_mode=False)
"""


def test_no_concurrent_change_of_keys_is_lost(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, name, access], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("a", "b", "c")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0, 0, 0]
    names = {key["name"] for key in json.loads(run("keys", "list", "--access", access, "--json"))}
    assert names == {f"{process}-{number}" for process in "abc" for number in range(20)}
