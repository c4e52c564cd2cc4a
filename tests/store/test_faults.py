"""Faults of files: full disks, missing permissions, damage, other files. Each gives a clear error or a right answer.

A scenario across all modules of the store.
"""

import errno
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import polars as pl
import pytest
from tests.store.traffic import Traffic, replayed, submit

import unbasket as ub
from unbasket.domain.events import Forget, Learn
from unbasket.errors import (
    DiskFullError,
    ErasureBlockedError,
    StoreCorruptError,
    StoreError,
    StoreLockedError,
    UnbasketError,
)
from unbasket.store import audit, schema, wal
from unbasket.store.lock import WriterLock
from unbasket.store.reader import DatabaseReader
from unbasket.store.wal import wal_path

NOBODY = 65534
PAGE = 4096  # of memory, and of most disks


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def filled(path: Path, requests: int = 60, seed: int = 1) -> str:
    """Write a closed database with receipts and zeroed rows in it; returns its digest."""
    traffic = Traffic(seed)
    with ub.open(path, ub.Params(group_size=3, alpha=0.8)) as engine:
        for _ in range(requests):
            submit(engine, traffic.request())
        return engine.digest()


def digest_of(path: Path) -> str:
    with ub.open(path, read_only=True) as reader:
        return reader.digest()


def crashed(path: Path, folder: Path) -> Path:
    """Copy the files of an open database as a crash would leave them."""
    shutil.copytree(path.parent, folder)
    return folder / path.name


# A full disk ----------------------------------------------------------------------------------------------------


class FullDisk:
    """A folder whose files can't grow while it is `full`."""

    def __init__(self, folder: Path, full: Callable[[int], object], roomy: Callable[[], object]) -> None:
        self.folder, self._full, self._roomy = folder, full, roomy

    @contextmanager
    def full(self, spare: int = 0) -> Iterator[None]:
        """Let files grow by no more than some pages in the block."""
        self._full(spare * PAGE)
        try:
            yield
        finally:
            self._roomy()


@contextmanager
def _small_disk(folder: Path) -> Iterator[FullDisk]:
    """Mount a small disk, with a file that takes up all its space."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "unbasket-test", str(folder)]
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("mount") is None or (sudo and shutil.which("sudo") is None):
        pytest.skip("no disk can be mounted here; test_full_disk[limit] goes on")
    if subprocess.run([*sudo, *mount], capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk may be mounted here; test_full_disk[limit] goes on")
    try:
        if sudo:
            subprocess.run([*sudo, "chown", str(os.getuid()), str(folder)], check=True)
        yield FullDisk(folder, lambda spare: _fill_up(folder / "ballast", spare), (folder / "ballast").unlink)
    finally:
        subprocess.run([*sudo, "umount", str(folder)], check=True)


def _fill_up(ballast: Path, spare: int) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(PAGE))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        file.truncate(file.tell() - spare)


@contextmanager
def _limited_files(folder: Path) -> Iterator[FullDisk]:
    """Limit the files of this process to the size of the longest of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(spare: int) -> None:
        longest = max(path.stat().st_size for path in folder.iterdir())
        resource.setrlimit(resource.RLIMIT_FSIZE, (longest + spare, hard))

    yield FullDisk(folder, limit, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)))


@pytest.fixture(params=["tmpfs", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FullDisk]:
    with (_small_disk if request.param == "tmpfs" else _limited_files)(tmp_path) as disk:
        yield disk


def _until_it_fails(engine: ub.DurableRecommender) -> tuple[list[Learn], str]:
    """Learn until an error; returns the acknowledged events, and the message."""
    happened: list[Learn] = []
    for number in range(5000):
        event = Learn(f"user {number % 7}", [f"item {number}", "milk"], number, number)
        try:
            submit(engine, [event])
        except StoreError as error:
            return happened, str(error)
        happened.append(event)
    raise AssertionError("the disk is not full")


def test_full_disk(disk: FullDisk) -> None:
    """No acknowledged event is lost, memory equals disk, and the engine goes on when there is room."""
    path, params = disk.folder / "shop.db", ub.Params(group_size=3, alpha=0.8)
    traffic = Traffic(3)
    with ub.open(path, params) as engine:
        twin = ub.Recommender(params, salt=engine.salt)
        for _ in range(3):
            for _ in range(30):
                request = traffic.request()
                submit(engine, request)
                submit(twin, request)
            with disk.full():
                happened, message = _until_it_fails(engine)
                assert "Nothing was changed" in message
                twin.apply(happened)
                assert engine.digest() == twin.digest()
                assert digest_of(path) == twin.digest()
                assert engine.verify().ok
                with pytest.raises(StoreError):  # more than SQLite keeps in memory: it fails before the end
                    engine.fit(pl.DataFrame({"user": "big", "basket": range(60_000), "item": "milk"}))
                assert "big" not in engine
                assert digest_of(path) == engine.digest() == twin.digest()
            engine.learn("after", ["milk"], basket=1)
            twin.learn("after", ["milk"], basket=1)
            assert digest_of(path) == engine.digest() == twin.digest()
        assert audit(engine.receipts()).ok
    with ub.open(path) as engine:
        assert engine.digest() == twin.digest()


def test_forgetting_on_a_full_disk(disk: FullDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is done wholly or not at all; if the bytes can't be erased now, an error says so, and the next forget does."""
    path = disk.folder / "shop.db"
    outcomes = set()
    with ub.open(path) as engine:
        for number in range(12):
            monkeypatch.setattr(
                wal, "_RESERVE_FROM", 0 if number % 4 == 0 else sys.maxsize
            )  # zeros are room in the log
            for basket in range(40):
                engine.learn(number, [f"private {number} {basket} {400 * 'x'}", "milk"], basket=basket)
            before = engine.digest()
            with disk.full(spare=2 * number):
                try:
                    engine.forget(number)
                    outcomes.add("forgotten")
                except ErasureBlockedError:
                    assert number not in engine
                    outcomes.add("blocked")
                except StoreError:
                    assert engine.digest() == before
                    outcomes.add("refused")
                assert digest_of(path) == engine.digest()
            engine.forget(number)
            assert number not in engine
            assert _grep(f"private {number} ", path.parent) == []
    assert outcomes >= {"forgotten", "refused"}
    assert "blocked" in outcomes or not disk.folder.is_mount()  # there is room for the log, but not for the file


def _grep(text: str, folder: Path) -> list[str]:
    files = [str(path) for path in folder.iterdir() if path.is_file()]
    done = subprocess.run(
        ["grep", "-l", "-a", "-F", "-e", text, "--", *files], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("grouping", ["fixed", "varying"])
def test_a_refusal_costs_what_it_undoes(
    path: Path, monkeypatch: pytest.MonkeyPatch, grouping: Literal["fixed", "varying"]
) -> None:
    """Of 2,000 baskets, only those of the changed users are read again, for any kind of change."""
    read: list[int] = []
    payloads = DatabaseReader.payloads

    def watched(reader: DatabaseReader, table: str, *bounds: int) -> Iterator[tuple[int, bytes]]:
        for row, payload in payloads(reader, table, *bounds):
            read.append(row)
            yield row, payload

    refused: list[Callable[[ub.Recommender], object]] = [
        lambda engine: engine.learn(7, ["milk", _LONG], basket=99),
        lambda engine: engine.learn(7, ["milk", _LONG], basket=7),  # an edit
        lambda engine: engine.learn(7, ["milk", _LONG], basket=98, time=3),
        lambda engine: engine.apply([Forget(7, None, None), Learn(7, [_LONG], 1, None), Learn(97, ["tea"], 1, 1)]),
        lambda engine: engine.apply([Forget(7, 207, None), Forget(8, None, "milk"), Learn(7, [_LONG], 3, None)]),
        lambda engine: engine.fit(pl.DataFrame({"user": [7, 2000], "basket": 999, "item": _LONG})),
    ]
    with ub.open(path, ub.Params(group_size=3, grouping=grouping, alpha=0.8)) as engine:
        rows = [(i % 200, i, item, i) for i in range(2000) for item in ("milk", f"item {i}")]
        engine.fit(pl.DataFrame(rows, orient="row", schema=["user", "basket", "item", "time"]), time="time")
        engine.describe(pl.DataFrame({"item": [f"item {i}" for i in range(2000)], "name": "a name"}), category=None)
        engine.forget(9)
        before, history = engine.digest(), engine.history(7)
        monkeypatch.setattr(DatabaseReader, "payloads", watched)
        execute = engine._journal._database._connection.execute
        for change in refused:
            read.clear()
            execute(f"PRAGMA max_page_count = {execute('PRAGMA page_count').fetchone()[0]}")
            with pytest.raises(DiskFullError, match="Nothing was changed") as refusal:
                change(engine)
            assert isinstance(refusal.value.__cause__, sqlite3.Error)
            execute("PRAGMA max_page_count = 1000000")
            with another_writer(path), pytest.raises(StoreLockedError, match="another program is writing"):
                change(engine)
            assert engine.digest() == before
            assert engine.history(7) == history
            assert len(engine.catalog) == 1990
            assert len(read) <= 80  # twice: two users' baskets, and the products that only they bought
            assert engine.verify().ok
        engine.learn(7, ["milk"], basket=99)
        engine.forget(7, basket=99)
        assert engine.digest() == before
    assert digest_of(path) == before


_LONG = "x" * 500_000


@contextmanager
def another_writer(path: Path) -> Iterator[None]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def test_a_full_disk_when_closing(disk: FullDisk) -> None:
    path = disk.folder / "shop.db"
    engine = ub.open(path)
    for basket in range(300):
        engine.learn(basket % 5, ["milk", f"item {basket}"], basket=basket)
    digest = engine.digest()
    with disk.full(), suppress(StoreError):
        engine.close()
    assert digest_of(path) == digest
    with ub.open(path) as again:
        assert again.digest() == digest


def test_a_full_disk_has_its_own_error(path: Path) -> None:
    with ub.open(path) as engine:
        execute = engine._journal._database._connection.execute
        execute(f"PRAGMA max_page_count = {execute('PRAGMA page_count').fetchone()[0]}")
        with pytest.raises(DiskFullError, match="Nothing was changed"):
            engine.learn("ann", ["x" * 100_000], basket=1)
        assert "ann" not in engine


def test_a_disk_without_room_for_a_new_database(path: Path) -> None:
    """At any size, the error is one of ours; when there is room, the next attempt succeeds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    failed = 0
    for limit in (0, 3, 100, 1000, PAGE, PAGE + 100, 2 * PAGE, 4 * PAGE, 5 * PAGE, 6 * PAGE, 7 * PAGE, 8 * PAGE, 2**15):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            ub.open(path).close()
        except StoreError:
            failed += 1
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        with ub.open(path) as engine:
            engine.learn("ann", ["milk"], basket=limit)
            engine.forget("ann")
            assert audit(engine.receipts()).ok
        for beside in path.parent.iterdir():
            beside.unlink()
    assert failed >= 5


def test_the_note_is_removed_before_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill in between, the log is there, or no note claims its rows."""
    logs: list[bool] = []
    mark_closed = WriterLock.mark_closed

    def watched(lock: WriterLock) -> None:
        logs.append(wal_path(path).exists())
        mark_closed(lock)

    monkeypatch.setattr(WriterLock, "mark_closed", watched)
    filled(path)
    assert logs[0] is True
    assert not wal_path(path).exists()


# Permissions ----------------------------------------------------------------------------------------------------


@contextmanager
def only_reading(folder: Path) -> Iterator[None]:
    """Make a folder and the files in it read-only for this process."""
    modes = {path: path.stat().st_mode for path in [folder, *folder.iterdir()]}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222 | 0o444 | (0o111 if path == folder else 0))
    try:
        with without_root():
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user of the machine can access."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_read_only_folder(open_folder: Path) -> None:
    path = open_folder / "shop.db"
    digest = filled(path)
    with only_reading(open_folder):
        with pytest.raises(StoreError, match=r"shop\.db: Permission denied"):
            ub.open(path)
        with pytest.raises(StoreError, match="Permission denied"):
            ub.open(open_folder / "new.db")
        assert digest_of(path) == digest
    assert digest_of(path) == digest


def test_a_read_only_file(open_folder: Path) -> None:
    path = open_folder / "shop.db"
    digest = filled(path)
    open_folder.chmod(0o777)
    for beside in open_folder.iterdir():
        beside.chmod(0o666)
    path.chmod(0o444)
    with without_root():
        with pytest.raises(
            StoreError, match=r"read-only\. Make it writable .* open it with read_only=True to read it$"
        ) as caught:
            ub.open(path)
        assert caught.value.problem.endswith("Nothing was changed")
        assert digest_of(path) == digest
    assert digest_of(path) == digest


@contextmanager
def without_root() -> Iterator[None]:
    """Run the block as a user to whom file modes apply, unlike root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_an_unreadable_file(open_folder: Path) -> None:
    path = open_folder / "shop.db"
    filled(path)
    path.chmod(0)
    with without_root(), pytest.raises(StoreError, match="cannot be opened"):
        digest_of(path)


# Damage ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str, Path]:
    """Return a database with interior pages, products, receipts and zeroed rows: its bytes, digest and keys."""
    path = tmp_path_factory.mktemp("sound") / "shop.db"
    filled(path, 80)
    with ub.open(path) as engine:
        rows = [(f"user {i % 60}", i, f"item {i % 90}", i) for i in range(2500)]
        engine.fit(pl.DataFrame(rows, orient="row", schema=["user", "basket", "item", "time"]), time="time")
        engine.describe(pl.DataFrame({"item": [f"item {i}" for i in range(90)], "name": "a name", "category": "some"}))
        engine.forget("user 7")
        digest = engine.digest()
    return path.read_bytes(), digest, path.with_name("shop.db-keys")


def regions(data: bytes) -> dict[str, list[int]]:
    """Return offsets by region: the header, roots of tables, pages of either kind, their heads and bodies."""
    pages = range(0, len(data), schema.PAGE)
    kinds = {page: data[page + 100 if page == 0 else page] for page in pages}
    found = {"header": list(range(100)), "schema": list(range(100, schema.PAGE))}
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(
            data[:18] + b"\1\1" + data[20:]
        )  # not in WAL mode, which a database in memory can't have
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema").fetchall())
    connection.close()
    for name, root in roots.items():
        found[f"root of {name}"] = list(range((root - 1) * schema.PAGE, root * schema.PAGE))
    for kind, name in ((5, "interior"), (13, "leaf")):
        own = [page for page in pages[1:] if kinds[page] == kind]
        assert own, name
        found[f"{name} heads"] = [page + i for page in own for i in range(64)]
        found[f"{name} bodies"] = [page + i for page in own for i in range(64, schema.PAGE)]
    end = roots["row_totals"] * schema.PAGE  # its only cell is at the end of the page
    found["the row totals"] = list(range(end - 40, end))
    found["anywhere"] = list(range(len(data)))
    return found


def test_flipped_bytes(sound: tuple[bytes, str, Path], path: Path) -> None:
    """Opening, reading and writing never give a wrong answer, nor an error that is not ours."""
    flip_often(sound, path, 20)


def test_flipped_bits_of_the_row_totals(path: Path) -> None:
    filled(path, 5)
    with sqlite3.connect(path) as connection:
        ((body,),) = connection.execute("SELECT body FROM row_totals")
        for bit in (*range(0, 8 * len(body), 8), *range(7, 8 * len(body), 8)):  # the ends of bytes
            damaged = bytearray(body)
            damaged[bit // 8] ^= 1 << bit % 8
            connection.execute("UPDATE row_totals SET body = ?", (bytes(damaged),))
            connection.commit()
            with pytest.raises(StoreCorruptError):
                ub.open(path)
    connection.close()


@pytest.mark.slow
def test_very_many_flipped_bytes(sound: tuple[bytes, str, Path], path: Path) -> None:
    flip_often(sound, path, 170)


def flip_often(sound: tuple[bytes, str, Path], path: Path, flips: int) -> None:
    data, digest, keys = sound
    seed = random.SystemRandom().getrandbits(32)
    chance = random.Random(seed)
    detected = dict.fromkeys(regions(data), 0)
    for region, offsets in regions(data).items():
        for number in range(flips):
            offset, flip = chance.choice(offsets), chance.choice([1 << chance.randrange(8), chance.randrange(1, 256)])
            damaged = bytearray(data)
            damaged[offset] ^= flip
            for beside in path.parent.iterdir():
                beside.unlink()
            shutil.copy(keys, path.with_name("shop.db-keys"))
            path.write_bytes(damaged)
            try:
                use(path, digest, writing=number % 2 == 0)
            except UnbasketError as error:
                assert str(path) in str(error) or "row" in str(error)  # noqa: PT017
                detected[region] += 1
            except BaseException as error:
                error.add_note(f"seed {seed}: {region}, offset {offset}, byte ^ {flip}")
                raise
    dense = ("leaf heads", "leaf bodies", "the row totals", "anywhere")  # other regions are mostly unused bytes
    assert sum(detected[region] for region in dense) > len(dense) * flips // 2, f"seed {seed}: {detected}"


def use(path: Path, digest: str, writing: bool) -> None:
    """Use a database, and check that it has this digest; or raise an error of ours."""
    with ub.open(path, read_only=not writing) as engine:
        assert engine.digest() == digest
        engine.receipts()
        if writing:
            engine.learn("another user", ["milk"], basket=1)
            engine.forget("another user")
    if writing:
        assert digest_of(path) == digest


def test_truncated(sound: tuple[bytes, str, Path], path: Path) -> None:
    data, digest, _ = sound
    chance = random.Random(5)
    sizes = [1, 50, 99, 100, 512, PAGE - 1, PAGE, PAGE + 1, len(data) - PAGE, len(data) - 1]
    for size in sizes + [chance.randrange(1, len(data)) for _ in range(30)]:
        for writing in (False, True):
            path.write_bytes(data[:size])
            with pytest.raises(StoreError):
                use(path, digest, writing)


@pytest.mark.parametrize("read_only", [True, False])
def test_damage_outside_of_rows(path: Path, read_only: bool) -> None:
    """In SQLite's pointer map, which only its own check reads."""
    filled(path)
    content = bytearray(path.read_bytes())
    content[schema.PAGE] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(StoreCorruptError, match="is damaged"):
        ub.open(path, read_only=read_only)


def test_pages_of_an_older_copy(path: Path) -> None:
    """Every row of an older leaf is sound, but the row totals count others."""
    filled(path, 40)
    old = path.read_bytes()
    traffic = Traffic(2)
    with ub.open(path) as engine:
        for _ in range(60):
            submit(engine, traffic.request())
        digest = engine.digest()
    new, detected = path.read_bytes(), 0
    for page in range(schema.PAGE, min(len(old), len(new)), schema.PAGE):
        if old[page : page + schema.PAGE] != new[page : page + schema.PAGE]:
            path.write_bytes(new[:page] + old[page : page + schema.PAGE] + new[page + schema.PAGE :])
            try:
                use(path, digest, writing=True)
            except StoreError:
                detected += 1
    assert detected >= 2


@pytest.mark.parametrize("table", ["baskets", "products", "settings", "receipts"])
def test_a_deleted_row(sound: tuple[bytes, str, Path], path: Path, table: str) -> None:
    """A row that another program deletes, with sound pages, is missed at each opening."""
    data, _, keys = sound
    path.write_bytes(data)
    shutil.copy(keys, path.with_name("shop.db-keys"))
    with sqlite3.connect(path) as connection:
        connection.execute(f"DELETE FROM {table} WHERE id = (SELECT max(id) FROM {table} WHERE hex(body) > '01')")
    connection.close()
    for read_only in (True, False, False, True):
        with pytest.raises(StoreCorruptError):
            ub.open(path, read_only=read_only)


def test_a_damaged_receipt(sound: tuple[bytes, str, Path], path: Path) -> None:
    """It is found when the database is opened."""
    data, digest, keys = sound
    shutil.copy(keys, path.with_name("shop.db-keys"))
    time = data.index(b"+00:00")  # of a receipt
    for damaged in (data[:time] + b"?" + data[time + 1 :], _without_receipt(path, data)):
        for read_only in (True, False):
            path.write_bytes(damaged)
            with pytest.raises(StoreCorruptError, match=r"receipt"):
                ub.open(path, read_only=read_only)
    path.write_bytes(data)
    assert digest_of(path) == digest


def _without_receipt(path: Path, data: bytes) -> bytes:
    """Zero a receipt in the middle, with sound pages."""
    path.write_bytes(data)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE receipts SET body = zeroblob(length(body)) WHERE id = 2")
    connection.close()
    return path.read_bytes()


def test_damage_stays_damage_after_a_crash(path: Path, tmp_path: Path) -> None:
    """The first attempt to open it neither repairs the row totals nor loses the log."""
    with ub.open(path) as engine:
        for basket in range(20):
            engine.learn("ann", ["milk"], basket=basket)
        copy = crashed(path, tmp_path / "copy")
    with sqlite3.connect(copy) as connection:
        connection.execute("DELETE FROM baskets WHERE id = 5")
    again = crashed(copy, tmp_path / "again")
    connection.close()
    for read_only in (True, False, False, True):
        with pytest.raises(StoreCorruptError, match="is damaged"):
            ub.open(again, read_only=read_only)


def test_the_digest_is_that_of_an_engine_in_memory(path: Path) -> None:
    """A database and an engine in memory with the same events have the same digest; with another salt it differs."""
    traffic = Traffic(1)
    requests = [traffic.request() for _ in range(60)]
    digest = filled(path)
    with ub.open(path, read_only=True) as rec:
        assert replayed(rec, requests).digest() == digest
        assert replayed(ub.Recommender(rec.params, salt=bytes(range(32))), requests).digest() != digest
