"""Opening a database: the model is built from the baskets in it, as a pure function of them."""

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from os import PathLike
from pathlib import Path
from secrets import randbelow
from typing import TYPE_CHECKING

from unbasket.domain.ids import Kind, text_types
from unbasket.domain.results import Forgotten, Progress
from unbasket.engine.digest import NO_SALT
from unbasket.engine.model import ErasureRecord, Model
from unbasket.errors import (
    InvalidRequestError,
    MixedIdsError,
    RollbackError,
    StoreCorruptError,
    StoreError,
    StoreVersionError,
)
from unbasket.files import real_path
from unbasket.params import MAX_SEED, Params, checked_params
from unbasket.store.backup import write_copy
from unbasket.store.durable import DurableRecommender
from unbasket.store.id_conversion import merged_baskets, mixed_error, mixed_ids, rewrite
from unbasket.store.journal import DiskJournal
from unbasket.store.lock import WriterLock, noted_rows
from unbasket.store.persistent_model import PersistentModel, Settings, stored_settings
from unbasket.store.receipts import ReceiptSigner
from unbasket.store.signing import SigningKeys, next_keys_of, signing_keys_of
from unbasket.store.wal import check_wal, is_wal_empty, wal_path
from unbasket.store.writer import TIMEOUT, Database

if TYPE_CHECKING:
    from unbasket.store.witness import Witness

_SMALLEST_PAGE = 512  # bytes; SQLite takes a smaller file for a new one, and would overwrite it


def open(  # noqa: A001 - the name that the package offers
    path: str | PathLike[str],
    params: Params | None = None,
    *,
    read_only: bool = False,
    keys: str | PathLike[str] | None = None,
    accept_loss: bool = False,
    to_text: Collection[Kind] = (),
    witness: str | PathLike[str] | None = None,
    accept_rollback: str | None = None,
    timestamp: str | None = None,
    lost_keys: str | None = None,
    salt: bytes | None = None,
    progress: Progress | None = None,
) -> DurableRecommender:
    """Open the engine whose baskets are in a file, which is created if it does not exist.

    A new file keeps `params` (by default `Params()`), with a random seed if its pool has none, and the `salt` of its
    digest, if one is given (see `Recommender.salt`); later, they may be left out. One process may write; with
    `read_only`, any number may read the state at the time of opening. `keys` is the file with the keys of the shop, by
    default one beside the database; if it is gone, `lost_keys` says why in a receipt, and makes new ones. A database
    that is older than the last checkpoint that the `witness`, a folder or an address, has seen is refused;
    `accept_rollback` goes on, and says why in a receipt. `timestamp` is the address of an RFC 3161 authority that
    timestamps each checkpoint in the folder of the witness. A database that has lost its newest rows, since its log was
    removed or damaged after a crash, is refused; `accept_loss` goes on with the others. Ids of the kinds in `to_text`
    become texts, as by `change_ids`; in a database that holds both types of a kind, as earlier versions allowed, each
    pair such as 17 and "17" is merged. `progress` is called with (rows read, rows in all).
    """
    keeper = _witness_of(witness, timestamp)
    path, params = real_path(Path(path)), None if params is None else checked_params(params)
    key_file = Path(keys or signing_keys_of(path))
    if read_only:
        with _readable(path, accept_loss) as database:
            with suppress(StoreError):  # without the keys, seals are not checked
                database.reader.row_key = SigningKeys.of(key_file).rows
            return DurableRecommender(database.path, _load(database, params, progress), key_file)
    lock = WriterLock(path)
    try:
        _check_files(path)
        lock.lock_database()
        if not accept_loss:
            check_wal(path)
            _check_noted_rows(path)
    except BaseException:
        lock.release()
        raise
    try:
        rec = _open_to_write(path, params, lock, key_file, lost_keys, to_text, salt, progress)
    except BaseException:
        if not wal_path(path).exists():  # SQLite removes a log when all of it is in the database
            lock.mark_closed()
        lock.release()
        raise
    if keeper is not None:
        _show_to(rec, keeper, accept_rollback)
    return rec


def _witness_of(place: str | PathLike[str] | None, authority: str | None) -> "Witness | None":
    if place is None:
        if authority is not None:
            raise InvalidRequestError(f"{authority} has nothing to timestamp without a witness. Give a folder as one")
        return None
    from unbasket.store.witness import witness_of  # imports cryptography, which takes long

    return witness_of(place, authority)


def _show_to(rec: DurableRecommender, witness: "Witness", accept_rollback: str | None) -> None:
    """Put a checkpoint before a witness; if it has a newer one, only an accepted rollback goes on."""
    rec.witness = witness
    try:
        _publish_first(rec, accept_rollback)
    except StoreError:
        rec.close()
        raise


def _publish_first(rec: DurableRecommender, accept_rollback: str | None) -> None:
    try:
        rec.publish_checkpoint()
    except RollbackError as error:
        if accept_rollback is None:
            raise RollbackError(
                f"{error}. Put the newest state of the database back. If that is gone, accept the rollback with a "
                "reason, which becomes a receipt: `unbasket receipts checkpoint --accept-rollback REASON`",
                "In Python: unbasket.open(..., accept_rollback=REASON)",
            ) from error
        rec.accept_rollback(accept_rollback)


def _check_files(path: Path) -> None:
    """Check that the database is there if files beside it are, and that it has one name only."""
    size, names = (path.stat().st_size, path.stat().st_nlink) if path.is_file() else (0, 1)
    if names > 1:
        raise StoreError(
            f"{path} has {names} names (hard links), and its log is beside one of them only. Remove the other names, "
            "or make a copy"
        )
    if 0 < size < _SMALLEST_PAGE:
        raise StoreVersionError(f"{path} has {size} bytes: it is not a database. Choose another file")
    left = [] if size or path.is_dir() else _files_beside(path)
    if left:
        raise StoreCorruptError(
            f"{path} is {'empty' if path.exists() else 'missing'}, but {' and '.join(left)} of it "
            f"{'is' if len(left) == 1 else 'are'} there. Put {path.name} back as it was, or restore a backup. To start "
            f"over, remove {' and '.join(left)}: rows that are only there are lost then"
        )


def _files_beside(path: Path) -> list[str]:
    """Return the names of the files that are made after a database, and so show that there was one."""
    files = {
        wal_path(path): not is_wal_empty(path),
        path.with_name(path.name + "-lock"): noted_rows(path) > 0,
        signing_keys_of(path): signing_keys_of(path).exists(),
    }
    return [file.name for file, shows_database in files.items() if shows_database]


def _check_noted_rows(path: Path) -> None:
    """Check, before anything is written, that all rows are there that the last writer noted as acknowledged."""
    rows = noted_rows(path)
    if rows:
        with closing(Database(path, read_only=True)) as database:
            _check_rows(database, rows)


def _check_rows(database: Database, rows: int) -> None:
    lost, log = rows - database.reader.rows_written, wal_path(database.path)
    if lost > 0:
        state = "missing or empty" if is_wal_empty(database.path) else "damaged or cut off"
        raise StoreCorruptError(
            f"{log} is {state} after a crash: of {rows} rows that were acknowledged, the newest {lost} are lost. Put "
            f"{log.name} back as it was, or restore a backup. To go on without these rows, accept their loss: "
            "`unbasket verify --accept-loss`",
            "In Python: unbasket.open(..., accept_loss=True)",
        )


def back_up(path: Path, target: Path, progress: Progress | None = None) -> None:
    """Write a copy of a database, while another process may write to it; see `store.backup`."""
    with _readable(real_path(path), accept_loss=False) as database:
        write_copy(database.reader, target, progress)


@contextmanager
def _readable(path: Path, accept_loss: bool) -> Iterator[Database]:
    """Open a database of which no acknowledged row is lost, unless the loss is accepted."""
    _check_files(path)
    rows = 0 if accept_loss else noted_rows(path)  # first, as another process may be writing
    if not accept_loss:
        check_wal(path)
    with closing(Database(path, read_only=True)) as database:
        _check_rows(database, rows)
        yield database


def _open_to_write(
    path: Path,
    params: Params | None,
    lock: WriterLock,
    key_file: Path,
    lost_keys: str | None,
    to_text: Collection[Kind],
    salt: bytes | None,
    progress: Progress | None,
) -> DurableRecommender:
    if not is_wal_empty(path):
        _recover(path, lock)
    database = Database(path, read_only=False)
    try:
        database.erase(TIMEOUT)
        keys = _keys_of(database, key_file, lost_keys)
        if database.reader.is_new:
            settings = Settings((params or Params()).seeded(randbelow(MAX_SEED + 1)), salt or NO_SALT)
            database.append("settings", settings.to_json())
            database.commit()
            database.sync()
        signer = ReceiptSigner(keys, database.reader.last_receipt())
        try:
            journal = _load(database, params, progress)
        except MixedIdsError:
            if not set(mixed_ids(database.reader)).issubset(to_text):
                raise
            _merge_ids(database, to_text, signer)
            journal = _load(database, params, progress)
        digest = journal.model.fingerprint()  # hashes all users now, so the first forget does not wait for it
        if lost_keys is not None:
            database.reseal(keys.rows)
            receipt = signer.issue_note("key", f"the key before was lost: {lost_keys}", digest)
            database.append("receipts", receipt.to_row())
            database.commit()
            database.sync()
        lock.mark_open(database.reader.rows_written)
    except BaseException:
        database.abandon()
        raise
    journal.allow_writing(lock, signer)
    rec = DurableRecommender(database.path, journal, key_file)
    if to_text:
        journal.change_ids(list(to_text))
    return rec


def _keys_of(database: Database, file: Path, lost: str | None) -> SigningKeys:
    """Return the keys of a database, which seals are checked with. It gets new ones if it is new, or they are lost."""
    if lost is not None:
        if file.exists():
            raise StoreError(f"{file} is there. If it is not that of {database.path}, remove it first")
        return SigningKeys.create(file)
    makes_new = database.reader.is_new and not file.exists()
    keys = SigningKeys.create(file) if makes_new else SigningKeys.of(file)
    database.reader.row_key = keys.rows
    pending = next_keys_of(file)
    if pending.exists():  # a crash came while the key was being changed
        successor, last = SigningKeys.of(pending), database.reader.last_receipt()
        if last is not None and last.detail == successor.public:
            pending.replace(file)
            return successor
        pending.unlink()
    return keys


def _merge_ids(database: Database, kinds: Collection[Kind], signer: ReceiptSigner) -> None:
    """Make ids of these kinds texts in a database that holds both types, and merge pairs, in one transaction."""
    types, (params, salt) = text_types(kinds), stored_settings(database, dict(database.reader.payloads("settings")))
    held = sum(1 for _ in database.reader.payloads("baskets"))
    baskets, merged = merged_baskets(database.reader, types, params)
    content = rewrite(database, baskets, types)
    after = PersistentModel(Model(params, salt), database, content).model.fingerprint()
    record = ErasureRecord(Forgotten(0, 0, merged), "", after, verified=len(baskets.owners) == held)
    database.append("receipts", signer.issue_conversion(record).to_row())
    database.commit()
    database.erase(TIMEOUT)
    database.sync()


def _recover(path: Path, lock: WriterLock) -> None:
    """Checkpoint the log that a crash left, and finish the erasure that it interrupted.

    In a connection of its own: for a recovery, SQLite copies parts of this process's memory into `-shm`, which is
    removed when the connection is closed.
    """
    database = Database(path, read_only=False)
    try:
        if database.erase(TIMEOUT):
            lock.mark_closed()
    finally:
        database.abandon()


def _load(database: Database, params: Params | None, progress: Progress | None) -> DiskJournal:
    try:
        persistent = PersistentModel.read(database, params, progress)
    except MixedIdsError as error:
        raise mixed_error(database.reader) from error
    if len(_item_types(persistent.model)) > 1:
        raise mixed_error(database.reader)
    return DiskJournal(database, persistent)


def _item_types(model: Model) -> set[type | None]:
    """Return the types of all item ids; those in baskets are of one type."""
    suppressed = chain.from_iterable(model.state.suppressed.values())
    others = chain(model.availability, (product.item for product in model.catalog), suppressed)
    return {*map(type, others), model.state.items.type} - {None}
