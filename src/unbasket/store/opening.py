"""Opening a database: the model is rebuilt from the baskets that are there, a pure function of them."""

from contextlib import closing
from dataclasses import asdict
from os import PathLike
from pathlib import Path

import msgspec

from unbasket.errors import InvalidParamsError, StoreCorruptError
from unbasket.params import Params
from unbasket.store.catalog import Catalog
from unbasket.store.database import PATIENCE, Database, Progress
from unbasket.store.durable import DurableRecommender
from unbasket.store.keys import Keys
from unbasket.store.loading import orders_of
from unbasket.store.lock import WriterLock
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
        return _reader(path, params, progress)
    lock, log = WriterLock(path), path.with_name(path.name + "-wal")
    missing = lock.left_by_a_crash() and not log.exists()
    try:
        if missing:
            raise StoreCorruptError(
                f"{log} is missing, though the last writer of {path.name} did not close it: what it learned last may "
                f"be lost. Put {log.name} back; or, to go on without, remove {lock.path}"
            )
        return _writer(path, params, lock, Path(keys or path.with_name(path.name + "-keys")), progress)
    except BaseException:
        if not missing and not log.exists():  # SQLite removes a log when all of it is in the database
            lock.unsign()
        lock.release()
        raise


def _reader(path: Path, params: Params | None, progress: Progress | None) -> DurableRecommender:
    with closing(Database(path, read_only=True)) as database:
        return _rebuilt(database, params, progress)


def _writer(
    path: Path, params: Params | None, lock: WriterLock, keys: Path, progress: Progress | None
) -> DurableRecommender:
    database = Database(path, read_only=False)
    try:
        database.erase(PATIENCE)  # what a crash kept from being erased
        if database.is_new:
            database.begin()
            database.append("settings", msgspec.json.encode(asdict(params or Params())))
            database.commit()
        engine = _rebuilt(database, params, progress)
        notary = Notary(Keys.of(keys), database.last_payload("receipts"))
        lock.sign()
    except BaseException:
        database.abandon()
        raise
    engine.allow_writing(lock, notary)
    return engine


def _rebuilt(database: Database, params: Params | None, progress: Progress | None) -> DurableRecommender:
    tables = database.load(progress)
    settings = tables["settings"]
    stored = Params(**msgspec.json.decode(settings[max(settings)]))
    if params is not None and params != stored:
        raise InvalidParamsError(f"{database.path} has {stored}, not {params}. Leave them out, or use another file")
    return DurableRecommender(stored, database, orders_of(tables["baskets"]), Catalog(tables["products"].items()))
