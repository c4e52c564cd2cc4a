"""A shop's database, as the commands use it: the option that names it, opening it, naming what is in it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from unbasket import store
from unbasket.cli.progress import progress_bar
from unbasket.errors import StoreError, UnknownUserError
from unbasket.ids import Id
from unbasket.params import Params
from unbasket.results import Basket
from unbasket.spelling import IdReader
from unbasket.store import DurableRecommender

Db = Annotated[
    Path, typer.Option("--db", envvar="UNBASKET_DB", metavar="FILE", help="The shop's database, such as shop.db.")
]
User = Annotated[str, typer.Argument(metavar="USER", help="A user's id.")]


def open_to_read(db: Path) -> DurableRecommender:
    """The engine of this moment; a service may go on writing."""
    with progress_bar("opening") as report:
        return store.open(db, read_only=True, progress=report)


def open_to_write(db: Path, keys: Path | None = None) -> DurableRecommender:
    """The engine of a database that exists: a mistyped name must not make a new one."""
    if not db.exists():
        raise StoreError(f"{db} does not exist. Check its name; `unbasket import` creates a database")
    with progress_bar("opening") as report:
        return store.open(db, keys=keys, progress=report)


def open_or_create(db: Path, params: Params | None) -> DurableRecommender:
    """The engine of a database, which is made if it does not exist."""
    with progress_bar("opening") as report:
        return store.open(db, params, progress=report)


def keys_of(db: Path) -> Path:
    """The file with the keys of a database's receipts."""
    return db.with_name(db.name + "-keys")


def known_user(rec: DurableRecommender, text: str) -> Id:
    """The user that a text means; an error if nothing is held of him."""
    user = IdReader(rec).user(text)
    if user not in rec:
        raise UnknownUserError(f"nothing is held of user {user!r}")
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
