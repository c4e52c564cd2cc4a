"""Loss of acknowledged rows after a crash is reported: a log that was removed, emptied, cut or damaged.

A scenario across `lock`, `wal` and `opening`.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.store.test_faults import crashed, digest_of, filled
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli.app import app
from unbasket.errors import StoreCorruptError, UnbasketError
from unbasket.store.lock import noted_rows
from unbasket.store.wal import wal_path


@pytest.fixture
def crash(tmp_path: Path) -> Path:
    """Return a database that a kill left with 50 acknowledged users, some of them in the log only."""
    path = tmp_path / "shop.db"
    filled(path)
    with ub.open(path) as engine:
        for user in range(50):
            engine.learn(f"newest {user}", ["milk", f"item {user}"], basket=1)
        return crashed(path, tmp_path / "crashed")


def copied(path: Path, folder: Path) -> Path:
    shutil.copytree(path.parent, folder)
    return folder / path.name


def users_in(path: Path, *, read_only: bool) -> int:
    with ub.open(path, read_only=read_only) as engine:
        assert engine.verify().ok
        return sum(str(user).startswith("newest") for user in engine.users())


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(_end(data))]


def flipped(data: bytes, chance: random.Random) -> bytes:
    offset = chance.randrange(_end(data))
    return data[:offset] + bytes([data[offset] ^ 1 << chance.randrange(8)]) + data[offset + 1 :]


def zeroed(data: bytes, chance: random.Random) -> bytes:
    offset = chance.randrange(_end(data))
    return data[:offset] + bytes(len(data) - offset)


def _end(log: bytes) -> int:
    """Return where the zeros begin that were written ahead."""
    return len(log.rstrip(b"\0"))


@pytest.mark.parametrize("damage", [cut, flipped, zeroed])
def test_a_damaged_log(crash: Path, tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]) -> None:
    """All acknowledged users are there, or opening says how much is missing."""
    damage_often(crash, tmp_path, damage, 25)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [cut, flipped, zeroed])
def test_very_many_damaged_logs(crash: Path, tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]) -> None:
    damage_often(crash, tmp_path, damage, 200)


def damage_often(crash: Path, tmp_path: Path, damage: Callable[[bytes, random.Random], bytes], times: int) -> None:
    seed = random.SystemRandom().getrandbits(32)
    chance, named = random.Random(seed), 0
    for number in range(times):
        path = copied(crash, tmp_path / str(number))
        wal_path(path).write_bytes(damage(wal_path(path).read_bytes(), chance))
        for read_only in (True, False, True):
            try:
                assert users_in(path, read_only=read_only) == 50, seed
            except StoreCorruptError as error:
                assert str(wal_path(path)) in str(error)  # noqa: PT017
                named += 1
    assert named > times, seed


def test_an_emptied_log(crash: Path) -> None:
    wal_path(crash).write_bytes(b"")
    for read_only in (True, False, False):
        with pytest.raises(StoreCorruptError, match=r"missing or empty.* rows that were acknowledged"):
            ub.open(crash, read_only=read_only)
    with ub.open(crash, read_only=True, accept_loss=True) as reader:
        left = reader.digest()
    with ub.open(crash, accept_loss=True) as engine:
        assert engine.digest() == left
        engine.learn("ann", ["milk"], basket=1)
    assert users_in(crash, read_only=False) == 0  # from now on, nothing is missing


def test_an_older_log(crash: Path, tmp_path: Path) -> None:
    """It is valid, but it ends too early."""
    copy = copied(crash, tmp_path / "copy")
    with ub.open(copy) as engine:
        engine.learn("one more", ["milk"], basket=1)
        later = crashed(copy, tmp_path / "later")
    shutil.copy(wal_path(crash), wal_path(later))
    with pytest.raises(StoreCorruptError):
        ub.open(later)


def test_accepting_a_loss_by_command(crash: Path) -> None:
    wal_path(crash).unlink()
    for command, code in ((["verify"], 2), (["verify", "--accept-loss"], 0), (["verify"], 0)):
        result = CliRunner().invoke(app, [*command, "--db", str(crash)])
        assert result.exit_code == code, result.output


def test_a_closed_database_claims_nothing(tmp_path: Path) -> None:
    """It may be replaced by a backup without a question."""
    path = tmp_path / "shop.db"
    digest = filled(path)
    backup = shutil.copy(path, tmp_path / "backup")
    with ub.open(path) as engine:
        engine.learn("ann", ["milk"], basket=1)
        assert noted_rows(path) > 0
    assert noted_rows(path) == 0
    shutil.copy(backup, path)
    assert digest_of(path) == digest
    ub.open(path).close()


@pytest.mark.parametrize(
    "note", [b"", b"12", b"1234            \n", b"%-15d\n%020d %08x\n" % (7, 10**6, 0), b"\0" * 64]
)
def test_a_damaged_note_claims_nothing(crash: Path, note: bytes) -> None:
    """A power loss may damage it, since it is not synced."""
    crash.with_name("shop.db-lock").write_bytes(note)
    assert users_in(crash, read_only=True) == 50
    assert users_in(crash, read_only=False) == 50


def test_a_missing_database(crash: Path, tmp_path: Path) -> None:
    """No empty database is created at its path, and its log stays."""
    crash.rename(tmp_path / "elsewhere")
    log = wal_path(crash).read_bytes()
    for read_only in (False, True, False):
        with pytest.raises(
            StoreCorruptError, match=r"is missing, but shop\.db-wal and shop\.db-lock and shop\.db-keys"
        ):
            ub.open(crash, read_only=read_only)
    assert wal_path(crash).read_bytes() == log
    (tmp_path / "elsewhere").rename(crash)
    assert users_in(crash, read_only=False) == 50


def test_files_beside_a_missing_database(tmp_path: Path) -> None:
    """Each file alone shows that there was one, but not an empty lock file."""
    path = tmp_path / "shop.db"
    filled(path)
    keys = path.with_name("shop.db-keys")
    path.unlink()
    with pytest.raises(UnbasketError, match=r"To start over, remove shop\.db-keys"):
        ub.open(path)
    keys.unlink()
    assert path.with_name("shop.db-lock").read_bytes() == b""
    with ub.open(path) as engine:
        assert len(engine) == 0
