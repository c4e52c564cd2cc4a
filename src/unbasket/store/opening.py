"""Opening a database: the model is rebuilt from the baskets in it, as a pure function of them."""

from contextlib import closing
from dataclasses import asdict
from os import PathLike
from pathlib import Path

import msgspec

from unbasket.errors import InvalidParamsError, StoreCorruptError, StoreError, StoreVersionError
from unbasket.params import Params
from unbasket.store.catalog import Catalog
from unbasket.store.database import PATIENCE, Database, Progress
from unbasket.store.durable import DurableRecommender
from unbasket.store.keys import Keys
from unbasket.store.loading import orders_of
from unbasket.store.lock import WriterLock
from unbasket.store.log import check_log, is_empty, log_of
from unbasket.store.receipts import Notary


def open(  # noqa: A001 - the name that the package offers
    path: str | PathLike[str],
    params: Params | None = None,
    *,
    read_only: bool = False,
    keys: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> DurableRecommender:
    """The engine whose baskets are in a file, which is created if it does not exist.

    A new file takes over `params` (by default `Params()`); later, they may be left out. One process may write; with
    `read_only`, any number may read the state of the moment of opening. `keys` is the file with the keys for
    receipts, by default one beside the database. `progress` is called with (rows read, rows in all).
    """
    path = Path(path)
    if read_only:
        check_log(path)
        return _reader(path, params, progress)
    keys, lock = Path(keys or path.with_name(path.name + "-keys")), WriterLock(path)
    try:
        check_log(path)
        _check_size(path, keys)
    except BaseException:
        lock.release()
        raise
    try:
        return _writer(path, params, lock, keys, progress)
    except BaseException:
        if not log_of(path).exists():  # SQLite removes a log when all of it is in the database
            lock.unsign()
        lock.release()
        raise


def _check_size(path: Path, keys: Path) -> None:
    """SQLite takes a file of less than a page for a new one, and would overwrite it."""
    if not path.is_file():
        return
    size = path.stat().st_size
    if 0 < size < 512:
        raise StoreVersionError(f"{path} has {size} bytes: it is not a database. Choose another file")
    if size == 0 and keys.exists() and not log_of(path).exists():
        raise StoreCorruptError(
            f"{path} is empty, but {keys.name} is there: its content was lost. Restore a backup, or remove it"
        )


def _reader(path: Path, params: Params | None, progress: Progress | None) -> DurableRecommender:
    with closing(Database(path, read_only=True)) as database:
        return _rebuilt(database, params, progress)


def _writer(
    path: Path, params: Params | None, lock: WriterLock, keys: Path, progress: Progress | None
) -> DurableRecommender:
    if not is_empty(path):
        _recover(path, lock)
    database = Database(path, read_only=False)
    try:
        database.erase(PATIENCE)
        if database.is_new:
            database.append("settings", msgspec.json.encode(asdict(params or Params())))
            database.commit()
            database.settle()
        engine = _rebuilt(database, params, progress)
        notary = Notary(Keys.of(keys), database.last_payload("receipts"))
        lock.sign()
    except BaseException:
        database.abandon()
        raise
    engine.allow_writing(lock, notary)
    return engine


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


def _rebuilt(database: Database, params: Params | None, progress: Progress | None) -> DurableRecommender:
    tables = database.load(progress)
    settings = tables["settings"]
    if not settings:
        raise StoreError(f"{database.path} has no parameters: whoever created it has not finished. Open it for writing")
    stored = Params(**msgspec.json.decode(settings[max(settings)]))
    if params is not None and params != stored:
        raise InvalidParamsError(f"{database.path} has {stored}, not {params}. Leave them out, or use another file")
    return DurableRecommender(stored, database, orders_of(tables["baskets"]), Catalog(tables["products"].items()))
