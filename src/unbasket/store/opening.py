"""Opening a database: the model is rebuilt from the baskets in it, as a pure function of them."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from secrets import randbelow

import msgspec

from unbasket.domain.progress import Progress
from unbasket.engine.model import Model
from unbasket.errors import InvalidParamsError, StoreCorruptError, StoreError, StoreVersionError
from unbasket.files import real_path
from unbasket.params import MAX_SEED, Params, checked_params
from unbasket.store.backup import write_copy
from unbasket.store.durable import DurableRecommender
from unbasket.store.journal import DiskJournal
from unbasket.store.lock import WriterLock, noted
from unbasket.store.persistent_model import PersistentModel
from unbasket.store.receipts import ReceiptSigner
from unbasket.store.signing import SigningKeys, signing_keys_of
from unbasket.store.wal import check_log, is_empty, log_of
from unbasket.store.writer import PATIENCE, Database

_PAGE = 512  # bytes of the smallest; SQLite takes a smaller file for a new one, and would overwrite it


def open(  # noqa: A001 - the name that the package offers
    path: str | PathLike[str],
    params: Params | None = None,
    *,
    read_only: bool = False,
    keys: str | PathLike[str] | None = None,
    accept_loss: bool = False,
    progress: Progress | None = None,
) -> DurableRecommender:
    """The engine whose baskets are in a file, which is created if it does not exist.

    A new file takes over `params` (by default `Params()`), and draws a seed for a pool that has none; later, they may
    be left out. One process may write; with `read_only`, any number may read the state of the moment of opening.
    `keys` is the file with the keys for receipts, by default one beside the database. A database that has lost what was
    learned last, since its log was removed or damaged after a crash, is refused; `accept_loss` goes on with what is
    left. `progress` is called with (rows read, rows in all).
    """
    path, params = real_path(Path(path)), None if params is None else checked_params(params)
    if read_only:
        return _reader(path, params, accept_loss, progress)
    lock = WriterLock(path)
    try:
        _check_files(path)
        lock.hold_database()
        if not accept_loss:
            check_log(path)
            _check_note(path)
    except BaseException:
        lock.release()
        raise
    try:
        return _writer(path, params, lock, Path(keys or signing_keys_of(path)), progress)
    except BaseException:
        if not log_of(path).exists():  # SQLite removes a log when all of it is in the database
            lock.unsign()
        lock.release()
        raise


def _check_files(path: Path) -> None:
    """Check that the database is there if it was, and under one name only."""
    size, names = (path.stat().st_size, path.stat().st_nlink) if path.is_file() else (0, 1)
    if names > 1:
        raise StoreError(
            f"{path} has {names} names (hard links), and its log is beside one of them only. Remove the other names, "
            "or make a copy"
        )
    if 0 < size < _PAGE:
        raise StoreVersionError(f"{path} has {size} bytes: it is not a database. Choose another file")
    left = [] if size or path.is_dir() else _left_alone(path)
    if left:
        raise StoreCorruptError(
            f"{path} is {'empty' if path.exists() else 'missing'}, but {' and '.join(left)} of it "
            f"{'is' if len(left) == 1 else 'are'} there. Put {path.name} back as it was, or restore a backup. To begin "
            f"anew, remove {' and '.join(left)}: what is only there is lost then"
        )


def _left_alone(path: Path) -> list[str]:
    """The files that are made after a database, and say that there was one."""
    signs = {log_of(path): not is_empty(path), path.with_name(path.name + "-lock"): noted(path) > 0}
    return [
        file.name
        for file, is_sign in (signs | {signing_keys_of(path): signing_keys_of(path).exists()}).items()
        if is_sign
    ]


def _check_note(path: Path) -> None:
    """Check, before anything is written, that all is there that the last writer noted as acknowledged."""
    rows = noted(path)
    if rows:
        with closing(Database(path, read_only=True)) as database:
            _check_rows(database, rows)


def _check_rows(database: Database, rows: int) -> None:
    lost, log = rows - database.tables.rows, log_of(database.path)
    if lost > 0:
        state = "missing or empty" if is_empty(database.path) else "damaged or cut off"
        raise StoreCorruptError(
            f"{log} is {state} after a crash: of {rows} rows that were acknowledged, the newest {lost} are lost. Put "
            f"{log.name} back as it was, or restore a backup. To go on without these rows, accept their loss: "
            "`unbasket verify --accept-loss`",
            "In Python: unbasket.open(..., accept_loss=True)",
        )


def _reader(path: Path, params: Params | None, accept_loss: bool, progress: Progress | None) -> DurableRecommender:
    with _opened_to_read(path, accept_loss) as database:
        return DurableRecommender(database.path, _rebuilt(database, params, progress))


def back_up(path: Path, target: Path, progress: Progress | None = None) -> None:
    """Write a copy of a database, while others may write to it; see `store.backup`."""
    with _opened_to_read(real_path(path), accept_loss=False) as database:
        write_copy(database.tables, target, progress)


@contextmanager
def _opened_to_read(path: Path, accept_loss: bool) -> Iterator[Database]:
    """A database of which nothing is lost, or else the loss is accepted."""
    _check_files(path)
    rows = 0 if accept_loss else noted(path)  # first, as somebody may be writing
    if not accept_loss:
        check_log(path)
    with closing(Database(path, read_only=True)) as database:
        _check_rows(database, rows)
        yield database


def _writer(
    path: Path, params: Params | None, lock: WriterLock, keys: Path, progress: Progress | None
) -> DurableRecommender:
    if not is_empty(path):
        _recover(path, lock)
    database = Database(path, read_only=False)
    try:
        database.erase(PATIENCE)
        if database.tables.is_new:
            settings = (params or Params()).seeded(randbelow(MAX_SEED + 1))
            database.append("settings", msgspec.json.encode(asdict(settings)))
            database.commit()
            database.sync()
        journal = _rebuilt(database, params, progress)
        journal.model.fingerprint()  # all users are hashed now, so that the first forget does not wait for it
        notary = ReceiptSigner(SigningKeys.of(keys), database.tables.last_payload("receipts"))
        lock.sign(database.tables.rows)
    except BaseException:
        database.abandon()
        raise
    journal.allow_writing(lock, notary)
    return DurableRecommender(database.path, journal)


def _recover(path: Path, lock: WriterLock) -> None:
    """Take over what a crash left in the log, and erase what the crash kept from being erased.

    In a connection of its own: for a recovery, SQLite copies parts of this process's memory into `-shm`, which goes
    when the connection is closed.
    """
    database = Database(path, read_only=False)
    try:
        if database.erase(PATIENCE):
            lock.unsign()
    finally:
        database.abandon()


def _rebuilt(database: Database, params: Params | None, progress: Progress | None) -> DiskJournal:
    loaded = database.tables.load(progress)
    settings = loaded.others["settings"]
    if not settings:
        raise StoreError(f"{database.path} has no parameters: whoever created it has not finished. Open it for writing")
    stored = Params(**msgspec.json.decode(settings[max(settings)]))
    if params is not None and params.seeded(stored.pool_seed or 0) != stored:
        raise InvalidParamsError(
            f"{database.path} has {stored}, not {params}. Leave them out, and change them with change_params; or use "
            "another file"
        )
    return DiskJournal(database, PersistentModel(Model(stored), database, loaded))
