"""A shop's database: the option that names it, opening it, and how its users and items are shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from unbasket import store
from unbasket.cli._shared.terminal import progress_bar
from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id, Kind
from unbasket.domain.results import Basket
from unbasket.errors import StoreError, UnknownUserError
from unbasket.files import real_path
from unbasket.params import Params
from unbasket.store import DurableRecommender

_DB = typer.Option(
    "--db", envvar="UNBASKET_DB", metavar="FILE", help="The shop's database, such as shop.db.", dir_okay=False
)
Db = Annotated[Path, _DB]
OptionalDb = Annotated[Path | None, _DB]
User = Annotated[str, typer.Argument(metavar="USER", help="A user's id.")]

_FILE_ENDINGS = ("", "-wal", "-shm", "-keys", "-lock")  # of the database and the files that the store puts beside it


def open_to_read(db: Path) -> DurableRecommender:
    """Open a database as of this moment; a service may go on writing."""
    return _open(db, read_only=True)


@contextmanager
def open_to_write(
    db: Path, keys: Path | None = None, *, may_create: bool = False, **options: Any
) -> Iterator[DurableRecommender]:
    """Open a database with further options of `unbasket.open`; an existing one, unless it `may_create` one."""
    if not may_create:
        check_exists(db)
    with _closing(_open(db, keys=keys, **options)) as rec:
        yield rec


def check_exists(db: Path) -> None:
    """Raise if there is no database of this name."""
    if not db.exists():
        raise StoreError(f"{db} does not exist. Check its name; `unbasket import` creates a database")


@contextmanager
def open_or_create(db: Path, params: Params | None) -> Iterator[DurableRecommender]:
    """Open a database, or create it and, if the block fails, remove it again."""
    path = real_path(db)
    files = [path.with_name(path.name + ending) for ending in _FILE_ENDINGS]
    created = [] if db.exists() else [file for file in files if not file.exists()]
    try:
        with _closing(_open(db, params=params)) as rec:
            yield rec
    except BaseException:
        for file in created:
            file.unlink(missing_ok=True)
        raise


def _open(db: Path, **options: Any) -> DurableRecommender:
    with progress_bar("opening the database", then="building the model") as report:
        return store.open(db, progress=report, **options)


@contextmanager
def _closing(rec: DurableRecommender) -> Iterator[DurableRecommender]:
    """Close the engine after the block, under a progress bar: merging the log into the database can take a while."""
    try:
        yield rec
    finally:
        with progress_bar("writing the database"):
            rec.close()


def id_of(rec: DurableRecommender, kind: Kind, text: str) -> Id:
    """Return the id that a text means in a database, which need not hold it."""
    return rec.canonical_id(parse_id(text), kind)


def known_user(rec: DurableRecommender, text: str) -> Id:
    """Return the user that a text means, or raise if the database holds nothing about them."""
    user = id_of(rec, "user", text)
    if user not in rec:
        raise UnknownUserError(f"nothing is held about user {user!r}")
    return user


def label(rec: DurableRecommender, item: Id) -> str:
    """Return an item's name, if it is known, and its id, for people."""
    name = rec.catalog[item].name
    return str(item) if name is None else f"{name} ({item})"


def item_facts(rec: DurableRecommender, item: Id) -> dict[str, Any]:
    """Return an item for programs."""
    product = rec.catalog[item]
    return {"item": item, "name": product.name, "category": product.category}


def basket_facts(rec: DurableRecommender, basket: Basket) -> dict[str, Any]:
    """Return a basket for programs."""
    items = [item_facts(rec, item) for item in basket.items]
    return {"basket": basket.basket, "time": basket.time, "items": items}
