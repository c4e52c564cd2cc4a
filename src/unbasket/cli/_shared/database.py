"""A shop's database, as commands use it: the option that names it, opening it, and how items are shown."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from unbasket import store
from unbasket.cli._shared.progress import progress_bar
from unbasket.domain.id_text import IdReader
from unbasket.domain.ids import Id
from unbasket.domain.results import Basket
from unbasket.errors import StoreError, UnknownUserError
from unbasket.params import Params
from unbasket.store import DurableRecommender

Db = Annotated[
    Path,
    typer.Option(
        "--db", envvar="UNBASKET_DB", metavar="FILE", help="The shop's database, such as shop.db.", dir_okay=False
    ),
]
User = Annotated[str, typer.Argument(metavar="USER", help="A user's id.")]

_FILES = ("", "-wal", "-shm", "-keys", "-lock")  # what the store may write: the database, and beside it


def open_to_read(db: Path) -> DurableRecommender:
    """The engine as of this moment; a service may go on writing."""
    with _opening() as report:
        return store.open(db, read_only=True, progress=report)


@contextmanager
def open_to_write(db: Path, keys: Path | None = None, *, accept_loss: bool = False) -> Iterator[DurableRecommender]:
    """The engine of a database that exists: a mistyped name must not create a new one."""
    if not db.exists():
        raise StoreError(f"{db} does not exist. Check its name; `unbasket import` creates a database")
    with _opening() as report:
        rec = store.open(db, keys=keys, accept_loss=accept_loss, progress=report)
    with _closing(rec):
        yield rec


@contextmanager
def open_or_create(db: Path, params: Params | None) -> Iterator[DurableRecommender]:
    """The engine of a database, which is created if it does not exist, and removed again if that was for nothing."""
    created = [] if db.exists() else [file for file in _files_of(db) if not file.exists()]
    try:
        with _opening() as report:
            rec = store.open(db, params, progress=report)
        with _closing(rec):
            yield rec
    except BaseException:
        for file in created:
            file.unlink(missing_ok=True)
        raise


def _files_of(db: Path) -> list[Path]:
    return [db.with_name(db.name + ending) for ending in _FILES]


def _opening() -> AbstractContextManager[Callable[[int, int | None], None]]:
    return progress_bar("opening the database", then="building the model")


@contextmanager
def _closing(rec: DurableRecommender) -> Iterator[None]:
    """Close it at the end, however that comes; to bring everything into one file can take a while."""
    try:
        yield
    finally:
        with progress_bar("writing the database"):
            rec.close()


def known_user(rec: DurableRecommender, text: str) -> Id:
    """The user that a text means, or an error if the database holds nothing about them."""
    user = IdReader(rec).user(text)
    if user not in rec:
        raise UnknownUserError(f"nothing is held about user {user!r}")
    return user


def label(rec: DurableRecommender, item: Id) -> str:
    """An item for people: its name, if it is known, and its id."""
    name = rec.catalog[item].name
    return str(item) if name is None else f"{name} ({item})"


def item_facts(rec: DurableRecommender, item: Id) -> dict[str, Any]:
    """An item for programs."""
    product = rec.catalog[item]
    return {"item": item, "name": product.name, "category": product.category}


def basket_facts(rec: DurableRecommender, basket: Basket) -> dict[str, Any]:
    """A basket for programs."""
    return {
        "basket": basket.basket,
        "time": basket.time,
        "items": [item_facts(rec, item) for item in basket.items],
    }
