"""Forgotten data is in no byte of any file: the database, its write-ahead log, its shared memory, backups, or others.

Ids and names are random characters, so no eight bytes of one are found by chance. A plain model of the engine's content
tells which of them must be found in the files, and which must not. A scenario across all modules of the store.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest
from tests.store.file_search import WINDOW, FileSearcher, encoded, findable, windows

import unbasket as ub
from unbasket.domain.events import Event, Forget, Learn
from unbasket.domain.ids import Id
from unbasket.errors import ErasureBlockedError, StoreError
from unbasket.store import DurableRecommender
from unbasket.store.row_codec import decode_basket
from unbasket.store.signing import signing_keys_of
from unbasket.store.writer import Database

PRINTABLE = bytes(33 + code % 94 for code in range(256))
DIGITS = set("0123456789-")  # fragments of texts made of these are in many a hash of a receipt, by chance
CATEGORIES = 5
PARAMS = ub.Params(group_size=3, neighbors=5, alpha=0.8)


class UniqueIds:
    """Random ids and names, each drawn once."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._shared: list[Id] = [self.id() for _ in range(40)]
        self.categories = [self.text(20) for _ in range(CATEGORIES)]

    def text(self, length: int) -> str:
        return self.random.randbytes(length).translate(PRINTABLE).decode()

    def id(self) -> str:
        """Draw the id of a user or an item: short or long text, or digits."""
        return str(self._draw())

    def number(self) -> int:
        """Draw the id of a basket, which mostly needs nine bytes."""
        drawn = self._draw()
        return drawn if isinstance(drawn, int) else int.from_bytes(drawn.encode()[:7], "big")

    def _draw(self) -> Id:
        kind = self.random.random()
        if kind < 0.2:
            return self.random.choice([1, -1]) * self.random.randrange(2**33, 2**63)
        if kind < 0.25:
            return self.random.randrange(2**31)
        if kind < 0.35:
            return self.text(self.random.randint(4, 7))
        return self.text(self.random.randint(8, 40) if kind < 0.97 else self.random.randint(100, 3000))

    def items(self) -> list[Id]:
        """Draw the items of a basket: some that other users have, some new ones; now and then, thousands."""
        size = self.random.choices([1, 3, 10, 100, 3000], [300, 300, 100, 10, 1])[0]
        size = self.random.randint(1, size)
        shared = self.random.sample(self._shared, min(size, self.random.randint(0, 8)))
        return [*shared, *(self.id() for _ in range(size - len(shared)))] or [self.id()]


class Shop:
    """An engine in a folder, and a plain model of its content."""

    def __init__(self, folder: Path, searcher: FileSearcher, ids: UniqueIds) -> None:
        self.folder, self.path = folder, folder / "shop.db"
        self.searcher, self.ids = searcher, ids
        self.engine: DurableRecommender = ub.open(self.path, PARAMS)
        self.baskets: dict[Id, dict[Id, tuple[int | None, set[Id]]]] = {}
        self.products: dict[Id, tuple[str, str]] = {}
        self.hidden: set[Id] = set()
        self.suppressions: dict[Id, set[Id]] = {}  # by user
        self.erased: set[Id] = set()
        self._recently_erased: set[Id] = set()  # since the last check

    # Events -----------------------------------------------------------------------------------------------------

    def happen(self, *events: Event) -> None:
        """Apply events to engine and model, a single one by the method of its name."""
        self.note(*events)
        match events:
            case [Learn(user, items, basket, time)]:
                self.engine.learn(user, items, basket=basket, time=time)
            case [Forget(user, basket, item)]:
                self.engine.forget(user, basket=basket, item=item)
            case _:
                self.engine.apply(events)

    def note(self, *events: Event) -> None:
        """Apply events to the model."""
        before = self.held()
        for event in events:
            added = isinstance(event, Learn) and event.basket not in self.baskets.get(event.user, {})
            self._note(event)
            if not added:
                bought = self.bought()
                self.products = {item: product for item, product in self.products.items() if item in bought}
        held = self.held()
        self._recently_erased |= before - held
        self.erased = (self.erased | before) - held

    def _note(self, event: Event) -> None:
        baskets = self.baskets.setdefault(event.user, {})
        if isinstance(event, Learn):
            baskets[event.basket] = (event.time, set(event.items))
        else:
            for name in list(baskets) if event.basket is None else [event.basket]:
                time, items = baskets.get(name, (None, set()))
                baskets[name] = (time, items - {event.item} if event.item is not None else set())
                if not baskets[name][1]:
                    del baskets[name]
        if not baskets:
            del self.baskets[event.user]
            self.suppressions.pop(event.user, None)

    def describe(self) -> None:
        """Name a third of the items that have no name."""
        for item in sorted(self.bought() - set(self.products), key=str):
            if self.ids.random.random() < 0.3:
                self.products[item] = (self.ids.text(25), self.ids.random.choice(self.ids.categories))
        for kind in (int, str):
            rows = [(item, *product) for item, product in self.products.items() if isinstance(item, kind)]
            if rows:
                self.engine.describe(pl.DataFrame(rows, orient="row", schema=["item", "name", "category"]))

    def suppress(self, user: Id, item: Id) -> None:
        """Suppress an item for a known user."""
        self.engine.suppress(user, item)
        self.suppressions.setdefault(user, set()).add(item)
        self.erased -= self.held()

    def allow(self, user: Id, item: Id) -> None:
        """Allow a suppressed item."""
        before = self.held()
        self.suppressions[user].remove(item)
        self._recently_erased |= before - self.held()
        self.erased = (self.erased | before) - self.held()
        self.engine.allow(user, item)

    def set_availability(self, hide: set[Id], show: set[Id]) -> None:
        """Hide and show items."""
        before = self.held()
        self.hidden = self.hidden - show | hide
        self.erased = (self.erased | before) - self.held()
        self.engine.set_availability(hide=hide, show=show)

    def fill(self, users: int, baskets: int = 3) -> "Shop":
        """Learn baskets of new users, and describe some of their items."""
        events = [event for _ in range(users) for event in self.learns(self.ids.random.randint(1, 2 * baskets - 1))]
        self.happen(*events)
        self.describe()
        return self

    def learns(self, count: int) -> list[Learn]:
        """Draw baskets of a new user: all with a time, or all without."""
        user, timed = self.ids.id(), self.ids.random.random() < 0.5
        return [
            Learn(user, self.ids.items(), self.ids.number(), self.ids.random.randrange(1000) if timed else None)
            for _ in range(count)
        ]

    def any_basket(self) -> tuple[Id, Id, Id]:
        """Draw a user, one of their baskets, and one of its items."""
        user = self.ids.random.choice(list(self.baskets))
        basket = self.ids.random.choice(list(self.baskets[user]))
        return user, basket, self.ids.random.choice(sorted(self.baskets[user][basket][1], key=str))

    def any_forget(self) -> Event:
        """Draw an event that erases something: mostly a forget, now and then an edit or a move."""
        user, basket, item = self.any_basket()
        forgets: list[Event] = [
            Forget(user, None, None),
            Forget(user, basket, None),
            Forget(user, basket, item),
            Forget(user, None, item),
            Learn(user, self.ids.items(), basket, None),
        ]
        time, items = self.baskets[user][basket]
        if time is not None:
            forgets[-1] = Learn(user, [*items - {item}, self.ids.id()], basket, self.ids.random.randrange(1000))
        return self.ids.random.choices(forgets, [4, 3, 3, 2, 2])[0]

    def reopen(self) -> None:
        self.engine.close()
        self.engine = ub.open(self.path)

    def finish_compaction(self) -> None:
        """Finish a compaction: while it is under way, there are zeroed rows where `clean_rows` expects none."""
        while self.engine._journal._database._to_compact:
            self.engine.set_availability(hide=(), show=["nothing"])
        self.reopen()

    # Checks -----------------------------------------------------------------------------------------------------

    def bought(self) -> set[Id]:
        """Return all items that remain."""
        return {item for baskets in self.baskets.values() for _, items in baskets.values() for item in items}

    def held(self) -> set[Id]:
        """Return all ids and names that remain."""
        held = self.bought() | set(self.baskets) | self.hidden | set().union(*self.suppressions.values())
        for baskets in self.baskets.values():
            held.update(baskets)
        for product in self.products.values():
            held.update(product)
        return held

    def clean(self, folder: Path | None = None, thorough: bool = False) -> None:
        """Check that no fragment of an erased id or name is in any file, and that those that remain are.

        The search is for those erased since the last check and for a sample of all others; if `thorough`, for all.
        """
        held, erased = self.held(), self.erased
        if not thorough:
            held = self._some(held, 200)
            erased = erased & (self._recently_erased | self._some(erased, 200))
        held = {value for value in held if findable(value)}
        erased = {value for value in erased if not set(str(value)) <= DIGITS or isinstance(value, int)}
        self._recently_erased.clear()
        found = self.searcher.search(folder or self.folder, erased | held)
        residue = [value for value in found if value in erased]
        assert not residue, self.searcher.residue(folder or self.folder, residue)
        missed = held - set(found)  # a value across two pages may have no fragment of this length on either
        assert all(len(encoded(value)) < 2 * WINDOW - 1 for value in missed)
        assert len(missed) <= 2 + len(held) / 50
        assert hidden_files() == []

    def _some(self, ids: set[Id], most: int) -> set[Id]:
        return set(self.ids.random.sample(sorted(ids, key=str), min(most, len(ids))))

    def clean_rows(self, path: Path | None = None) -> None:
        """Check that the database has only zeros besides the rows that remain: this covers even the shortest id."""
        path = path or self.path
        assert not path.with_name(path.name + "-wal").exists() or path.with_name(path.name + "-wal").stat().st_size == 0
        parsed = self.searcher.parse(path)
        assert parsed.slack == []
        rows: dict[str, list[bytes]] = {}
        for table, found in parsed.rows.items():  # some are in two spaces
            rows.setdefault(table.removesuffix("_2"), []).extend(body[4:-8] for body in found.values() if any(body))
        baskets = [decode_basket(payload) for payload in rows["baskets"]]
        held = {(user, name): basket for user, baskets in self.baskets.items() for name, basket in baskets.items()}
        assert {(row.user, row.basket): (row.time, set(row.items)) for row in baskets} == held
        assert len(baskets) == len(held)
        products = [msgspec.msgpack.decode(payload) for payload in rows["products"]]
        described = {item: (name, category) for item, name, category, further in products if further == {}}
        assert described == self.products
        assert len(products) == len(described)
        assert {msgspec.msgpack.decode(payload)[0] for payload in rows["hidden"]} == self.hidden
        suppressions = [tuple(msgspec.msgpack.decode(payload)) for payload in rows["suppressed"]]
        assert sorted(suppressions, key=str) == sorted(
            ((user, item) for user, items in self.suppressions.items() for item in items), key=str
        )

    def clean_receipts(self) -> None:
        """Check that no receipt has an id or a name."""
        text = b"\n".join(receipt.to_json() for receipt in self.engine.receipts())
        assert text
        written = set(windows(text))
        for value in self.erased | self.held():
            if set(str(value)) <= DIGITS:  # fragments of it are in hashes by chance; twelve digits are not
                assert len(str(value)) < 12 or str(value).encode() not in text
            else:
                assert not written.intersection(windows(encoded(value)))


def hidden_files() -> list[str]:
    """Return SQLite's open temporary files of this process, which have no name in any folder."""
    links = []
    for descriptor in Path("/proc/self/fd").glob("*"):
        with suppress(OSError):
            links.append(os.readlink(descriptor))
    return [link for link in links if "etilqs" in link]


@pytest.fixture(scope="module")
def searcher() -> Iterator[FileSearcher]:
    with FileSearcher() as searcher:
        yield searcher


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of all files, temporary ones included."""
    (tmp_path / "temporary").mkdir()
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path / "temporary"))
    return tmp_path


@pytest.fixture
def shop(folder: Path, searcher: FileSearcher) -> Iterator[Shop]:
    shop = Shop(folder, searcher, UniqueIds(10)).fill(users=60)
    with closing(shop.engine):
        yield shop
    shop.engine.close()


# The search itself ----------------------------------------------------------------------------------------------------


def test_the_search_finds_every_fragment(folder: Path, searcher: FileSearcher) -> None:
    value, number = UniqueIds(1).text(30), 2**62 + 12345
    needle = encoded(value)
    for start in range(len(needle) - 7):
        (folder / "file").write_bytes(b"x" * (4096 + start) + needle[start : start + 8] + b"y" * start)
        assert searcher.search(folder, [value, number]) == {value: (str(folder / "file"), 4096 + start)}
    (folder / "file").write_bytes(b"x" * 5 + needle[:7] + b"y" + encoded(number)[1:])
    assert list(searcher.search(folder, [value, number])) == [number]


def test_the_search_finds_residue_of_sqlite(folder: Path, searcher: FileSearcher) -> None:
    """Deleting rows without secure_delete leaves them in gaps, overflow pages and free pages."""
    ids = UniqueIds(2)
    texts = [ids.text(length) for length in [30] * 300 + [9000] * 20]
    with closing(sqlite3.connect(folder / "a.db")) as connection:
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        connection.executemany("INSERT INTO t (body) VALUES (?)", [(text.encode(),) for text in texts])
        connection.commit()
        connection.execute("DELETE FROM t WHERE id > 1")
        connection.commit()
    assert len(searcher.search(folder, texts)) > 100
    parsed = searcher.parse(folder / "a.db")
    assert parsed.rows == {"t": {1: texts[0].encode()}}
    assert {slack.what for slack in parsed.slack} >= {"freelist page"}


def test_the_parser_is_right(shop: Shop) -> None:
    """It finds the rows that SQLite finds, overflow pages included."""
    shop.engine.close()
    parsed = shop.searcher.parse(shop.path)
    with closing(sqlite3.connect(shop.path)) as connection:
        for table, rows in parsed.rows.items():
            assert rows == dict(connection.execute(f"SELECT * FROM {table}").fetchall())
    assert max(len(body) for body in parsed.rows["baskets"].values()) > 20_000
    shop.clean_rows()


# One forget of each kind ----------------------------------------------------------------------------------------------

KINDS = ("user", "basket", "item of a basket", "item", "edit", "smaller edit", "move", "batch")


def events_of(kind: str, user: Id, basket: Id, item: Id) -> list[Event]:
    match kind:
        case "user":
            return [Forget(user, None, None)]
        case "basket":
            return [Forget(user, basket, None)]
        case "item of a basket":
            return [Forget(user, basket, item)]
        case "item":
            return [Forget(user, None, item)]
        case "edit":
            return [Learn(user, ["something else"], basket, None)]
        case "smaller edit":
            return [Learn(user, [item], basket, None)]
        case "move":
            return [Learn(user, [item], basket, 1500)]
    return [
        Learn("a new user", ["something new, and long"], 2**40, None),
        Forget(user, basket, item),
        Forget(user, None, None),
        Learn(user, ["something else"], basket, None),
        Forget("a new user", None, None),
        Forget("an unknown user", None, None),
    ]


@pytest.mark.parametrize("size", [1, 30, 3000])
@pytest.mark.parametrize("kind", KINDS)
def test_forgetting(shop: Shop, kind: str, size: int) -> None:
    ids = shop.ids
    user, timed = ids.text(30), kind == "move"
    items: list[Id] = [ids.id() if i % 2 else ids.text(15) for i in range(size)]
    for number in range(3):
        basket = 2**60 + size if number == 1 else ids.number()
        own = [items[0], *ids.items()] if number != 1 else items
        shop.happen(Learn(user, own, basket, number * 500 if timed else None))
    shop.describe()
    shop.happen(*shop.learns(2))
    shop.clean()
    shop.happen(*events_of(kind, user, 2**60 + size, items[0]))
    assert shop.erased or kind == "item of a basket" or size == 1
    shop.clean()
    if kind != "smaller edit" or size > 1:  # otherwise nothing was changed
        shop.clean_rows()
    shop.reopen()
    shop.clean()
    shop.clean_rows()
    if shop.engine.receipts():
        shop.clean_receipts()


def test_items_of_other_users_stay(shop: Shop) -> None:
    own, shared, names = shop.ids.text(20), shop.ids.text(20), [shop.ids.text(20) for _ in range(4)]
    shop.engine.describe({"item": [own, shared], "name": names[:2], "category": names[2:]})
    shop.products |= {own: (names[0], names[2]), shared: (names[1], names[3])}
    shop.happen(Learn("ann", [own, shared], 1, None), Learn("bob", [shared], 1, None))
    shop.clean()
    shop.happen(Forget("ann", None, None))
    assert {own, names[0], names[2]} <= shop.erased
    assert {shared, names[1], names[3]} <= shop.held()
    shop.clean()
    shop.happen(Forget("bob", 1, shared))
    assert {shared, names[1], names[3]} <= shop.erased
    shop.clean()
    shop.clean_rows()
    assert set(shop.engine.catalog.categories()) == {category for _, category in shop.products.values()}


def test_another_name_replaces_the_old_one(shop: Shop) -> None:
    [item, (name, category)] = next(iter(shop.products.items()))
    shop.engine.describe({"item": [item], "name": ["another name"], "category": [category]})
    shop.products[item] = ("another name", category)
    shop.erased.add(name)
    shop.clean()
    shop.clean_rows()


def test_hidden_items_stay_until_they_are_shown(shop: Shop) -> None:
    own, bought = shop.ids.text(20), shop.ids.text(20)
    shop.happen(Learn("ann", [bought], 1, None))
    shop.set_availability({own, bought, "0"}, set())
    shop.happen(Forget("ann", None, None))
    assert {own, bought} <= shop.held()  # hidden by the shop, not by ann
    shop.clean()
    shop.clean_rows()
    shop.set_availability(set(), {own, bought})
    assert {own, bought} <= shop.erased
    shop.clean()
    shop.clean_rows()
    shop.reopen()
    shop.clean()
    assert shop.engine.hidden() == ["0"]


def test_suppressions_are_erased_by_allow_and_with_the_user(shop: Shop) -> None:
    items, user = [shop.ids.text(20) for _ in range(3)], shop.ids.text(20)
    shop.happen(Learn(user, [items[0], items[2]], 1, None))
    for item in items:
        shop.suppress(user, item)
    shop.happen(Forget(user, None, items[2]))
    assert set(items) <= shop.held()
    shop.clean()
    shop.clean_rows()
    shop.allow(user, items[2])
    assert items[2] in shop.erased
    shop.clean()
    shop.clean_rows()
    shop.happen(Forget(user, 1, items[0]))  # the user's last purchase
    assert {user, *items} <= shop.erased
    shop.clean()
    shop.clean_rows()
    shop.reopen()
    shop.clean()
    shop.clean_receipts()


def test_rename_erases_the_old_id(shop: Shop) -> None:
    guest, user = shop.ids.text(20), shop.any_basket()[0]
    shop.happen(Learn(guest, shop.ids.items(), shop.ids.number(), None), Learn(guest, shop.ids.items(), 7, 9))
    shop.suppress(guest, shop.ids.text(20))
    shop.engine.rename(guest, user)
    shop.baskets[user] |= shop.baskets.pop(guest)
    shop.suppressions[user] = shop.suppressions.pop(guest)
    shop.erased.add(guest)
    shop.clean(thorough=True)
    shop.clean_rows()
    shop.reopen()
    shop.clean(thorough=True)
    shop.clean_receipts()


def test_receipts_have_no_ids(shop: Shop) -> None:
    for _ in range(20):
        shop.happen(shop.any_forget())
    shop.clean_receipts()


# Many random forgets --------------------------------------------------------------------------------------------------


def forget_at_random(shop: Shop, count: int) -> None:
    """Forget, and learn now and then; check after each."""
    chance = shop.ids.random.random
    for number in range(count):
        if len(shop.baskets) < 10:
            shop.fill(10)
        kind = chance()
        if kind < 0.15:
            shop.happen(*(shop.any_forget() for _ in range(3)), *shop.learns(2), shop.any_forget())
        else:
            shop.happen(shop.any_forget())
        shop.clean()
        if chance() < 0.3:
            shop.happen(*shop.learns(shop.ids.random.randint(1, 5)))
        if chance() < 0.3:
            user, _, item = shop.any_basket()
            shop.suppress(user, item if chance() < 0.5 else shop.ids.id())
            if chance() < 0.3:
                shop.allow(user, shop.ids.random.choice(sorted(shop.suppressions[user], key=str)))
        if chance() < 0.05:
            shop.describe()
            shop.happen(shop.any_forget())
            shop.finish_compaction()
            shop.clean_rows()
        if number % 40 == 39:
            shop.reopen()
    shop.clean(thorough=True)
    shop.clean_receipts()
    shop.finish_compaction()
    shop.engine.close()
    shop.clean_rows()


def random_forgets(folder: Path, searcher: FileSearcher, seed: int, users: int, count: int) -> None:
    shop = Shop(folder, searcher, UniqueIds(seed)).fill(users)
    try:
        forget_at_random(shop, count)
    finally:
        shop.engine.close()


def test_random_forgets(folder: Path, searcher: FileSearcher) -> None:
    random_forgets(folder, searcher, seed=0, users=700, count=100)


def test_random_forgets_beside_readers(folder: Path, searcher: FileSearcher) -> None:
    shop = Shop(folder, searcher, UniqueIds(2)).fill(users=200)
    with closing(shop.engine), child(ENGINES, shop.path), child(RAW_READER, shop.path, "0.02"):
        for _ in range(30):
            shop.happen(
                shop.any_forget(), Forget("an unknown user", None, None)
            )  # an edit alone does not wait for readers
            shop.clean()
            shop.happen(*shop.learns(2))
    shop.clean()
    shop.clean_rows()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_very_many_random_forgets(folder: Path, searcher: FileSearcher, seed: int) -> None:
    random_forgets(folder, searcher, seed, users=random.Random(seed).choice([30, 500, 2000]), count=500)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 206))
def test_very_many_random_forgets_with_compaction(
    folder: Path, searcher: FileSearcher, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    compact_soon(monkeypatch, random.Random(seed).choice([100, 10_000]))
    random_forgets(folder, searcher, seed, users=random.Random(seed).choice([10, 100, 300]), count=800)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 304))
def test_very_many_random_forgets_beside_readers(folder: Path, searcher: FileSearcher, seed: int) -> None:
    shop = Shop(folder, searcher, UniqueIds(seed)).fill(users=500)
    readers = (child(ENGINES, shop.path), child(RAW_READER, shop.path, "0.02"), child(RAW_READER, shop.path, "0.3"))
    with closing(shop.engine), readers[0], readers[1], readers[2]:
        for _ in range(300):
            shop.happen(shop.any_forget(), Forget("an unknown user", None, None))
            shop.clean()
            shop.happen(*shop.learns(2))
    shop.clean()
    shop.clean_rows()


# Readers --------------------------------------------------------------------------------------------------------------

ENGINES = """
    import select, sys
    import unbasket as ub

    opened = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        with ub.open(sys.argv[1], read_only=True) as engine:
            opened += 1
            if opened == 1:
                print("ready", flush=True)
    assert opened > 1
"""

RAW_READER = """
    import select, sqlite3, sys, time

    connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
    print("ready", flush=True)
    while True:
        connection.execute("BEGIN")
        print(connection.execute("SELECT count(*) FROM baskets").fetchone()[0], flush=True)
        if select.select([sys.stdin], [], [], float(sys.argv[2]))[0]:
            break
        connection.execute("COMMIT")
        if len(sys.argv) > 3:
            break
"""


@contextmanager
def child(script: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run another process, from when it is ready; it exits when its input ends."""
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()
        process.stdout.read()
    assert process.returncode == 0


def test_a_forget_waits_for_a_reader(shop: Shop) -> None:
    event = shop.any_forget()
    while not isinstance(event, Forget):
        event = shop.any_forget()
    shop.happen(*shop.learns(1))
    with child(RAW_READER, shop.path, "0.5", "once") as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        start = time.monotonic()
        shop.happen(event)
        assert time.monotonic() - start > 0.3
        shop.clean()
        shop.clean_rows()


@pytest.mark.parametrize("what", ["allow", "rename"])
def test_allow_and_rename_wait_for_a_reader(shop: Shop, what: str) -> None:
    guest, item = shop.ids.text(20), shop.ids.text(20)
    shop.happen(Learn(guest, [item], 1, None))
    shop.engine.suppress(guest, shop.ids.text(20))
    with child(RAW_READER, shop.path, "0.5", "once") as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        if what == "allow":
            [erased] = shop.engine.suppressed(guest)
            shop.engine.allow(guest, erased)
        else:
            erased = guest
            shop.engine.rename(guest, "an account")
        assert shop.searcher.search(shop.folder, [erased]) == {}


@pytest.fixture
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("writer", "journal", "opening"):
        monkeypatch.setattr(f"unbasket.store.{module}.TIMEOUT", 0.3)


@pytest.mark.usefixtures("short_timeout")
def test_a_reader_that_never_ends(shop: Shop) -> None:
    """A forget that it blocks is an error; the bytes go with the next forget of anything."""
    users = [user for user in shop.baskets if findable(user)][:3]
    with child(RAW_READER, shop.path, "1000") as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        for user in users[:2]:
            with pytest.raises(ErasureBlockedError):
                shop.happen(Forget(user, None, None))
            assert user not in shop.engine.users()
        assert set(shop.searcher.search(shop.folder, shop.erased)) >= set(users[:2])
    shop.happen(Forget("an unknown user", None, None))
    shop.clean()
    shop.clean_rows()


@pytest.mark.usefixtures("short_timeout")
@pytest.mark.parametrize("what", ["learn", "describe", "fit", "close"])
def test_bytes_that_a_reader_kept_go_with_the_next_write(shop: Shop, what: str) -> None:
    user = next(user for user in shop.baskets if findable(user))
    with child(RAW_READER, shop.path, "1000") as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        with pytest.raises(ErasureBlockedError):
            shop.happen(Forget(user, None, None))
    if what == "learn":
        shop.happen(*shop.learns(1))
    elif what == "describe":
        shop.describe()
    elif what == "fit":
        shop.engine.fit(pl.DataFrame({"user": ["ann"], "basket": [1], "item": ["milk"]}))
        shop.note(Learn("ann", ["milk"], 1, None))
    else:
        shop.engine.close()
    shop.clean()
    if what == "close":
        shop.clean_rows()


def test_an_edit_does_not_wait_for_a_reader(shop: Shop) -> None:
    """Only a forget waits: the old bytes of an edit go after the reader has ended."""
    user, basket, _ = shop.any_basket()
    bought_at, _ = shop.baskets[user][basket]
    with child(RAW_READER, shop.path, "1000") as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        start = time.monotonic()
        shop.happen(Learn(user, [shop.ids.text(20)], basket, bought_at))
        assert time.monotonic() - start < 5
    shop.happen(Forget("an unknown user", None, None))
    shop.clean()
    shop.clean_rows()


# Imports and backups --------------------------------------------------------------------------------------------------


def frame_of(events: list[Learn]) -> pl.DataFrame:
    rows = [(str(event.user), str(event.basket), str(item)) for event in events for item in event.items]
    return pl.DataFrame(rows, orient="row", schema=["user", "basket", "item"])


def untimed(events: list[Learn]) -> list[Learn]:
    return [event._replace(time=None) for event in events]


def test_after_an_import(shop: Shop) -> None:
    events = untimed([event for _ in range(200) for event in shop.learns(shop.ids.random.randint(1, 5))])
    shop.engine.fit(frame_of(events))
    shop.note(*events)
    shop.clean()
    further = untimed([event._replace(user=events[0].user) for event in shop.learns(3)])
    shop.engine.fit(frame_of([*further, events[0]._replace(items=["another item"])]))  # of a known user: an edit
    shop.note(*further, events[0]._replace(items=["another item"]))
    for event in shop.ids.random.sample(events, 30):
        shop.happen(Forget(event.user, *shop.ids.random.choice([(None, None), (event.basket, None)])))
        shop.clean()
    shop.reopen()
    shop.clean_rows()


@pytest.mark.parametrize("forgotten", [True, False])
def test_after_an_import_that_was_interrupted(shop: Shop, forgotten: bool) -> None:
    """Baskets of a rolled back import are in no file after the next event."""
    events = untimed([event for _ in range(4000) for event in shop.learns(2)])

    def interrupt(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shop.engine.fit(frame_of(events), progress=interrupt)
    shop.erased |= {event.user for event in events} - set(shop.baskets)
    if forgotten:
        shop.happen(Forget(events[0].user, None, None))
    else:
        shop.happen(*shop.learns(1))
    shop.clean(thorough=True)


def test_backups(shop: Shop) -> None:
    for _ in range(10):
        shop.happen(shop.any_forget())
    backup = shop.folder / "backups" / "monday.db"
    backup.parent.mkdir()
    shop.engine.backup(backup)
    assert [path.name for path in backup.parent.iterdir()] == ["monday.db"]
    shop.clean()
    shop.clean_rows(backup)
    shop.clean(backup.parent)
    shop.engine.close()
    shop.engine, shop.path = ub.open(backup, keys=signing_keys_of(shop.path)), backup
    for _ in range(30):
        shop.happen(shop.any_forget())
        shop.clean(backup.parent)
    shop.clean_rows()
    shop.clean_receipts()


def test_a_backup_that_fails_leaves_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    backup = shop.folder / "backups" / "monday.db"
    backup.parent.mkdir()
    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises((OSError, StoreError), match="no room"):
        shop.engine.backup(backup)
    assert list(backup.parent.iterdir()) == []


# Compaction -----------------------------------------------------------------------------------------------------------


def compact_soon(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let every forget copy a batch of this many bytes."""
    monkeypatch.setattr("unbasket.store.writer._WORTH_COMPACTING", 20)
    monkeypatch.setattr("unbasket.store.writer._PACE", 0)
    monkeypatch.setattr("unbasket.store.compaction.BATCH_SIZE", size)


@pytest.fixture(params=[2000, 20_000])
def soon_compacted(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    compact_soon(monkeypatch, request.param)


def forget_most(shop: Shop) -> None:
    while len(shop.baskets) > 20:
        shop.happen(*(Forget(shop.any_basket()[0], None, None) for _ in range(5)))
        shop.clean()


@pytest.mark.usefixtures("soon_compacted")
def test_after_compaction(shop: Shop) -> None:
    shop.fill(users=60)
    shop.reopen()
    size = shop.path.stat().st_size
    forget_most(shop)
    shop.finish_compaction()
    assert shop.path.stat().st_size < size / 2
    shop.clean_rows()
    shop.reopen()
    for _ in range(10):
        shop.happen(shop.any_forget())
        shop.clean()
    shop.finish_compaction()
    shop.clean_rows()


def test_no_copy_of_a_row_is_left_where_rows_are_deleted(folder: Path, searcher: FileSearcher) -> None:
    """With small batches of a table of many pages, a copied row is nowhere else, not even in unallocated bytes."""
    with pytest.MonkeyPatch.context() as patch:
        compact_soon(patch, 3000)
        shop = Shop(folder, searcher, UniqueIds(5)).fill(users=300)
        with closing(shop.engine):
            forget_most(shop)
            for user in list(shop.baskets):
                shop.happen(Forget(user, None, None))
                shop.clean(thorough=True)
            shop.finish_compaction()
            shop.clean_rows()


class Failing:
    """A connection whose statements fail if they begin with a word."""

    def __init__(self, connection: sqlite3.Connection, word: str, times: int, failure: Callable[[], object]) -> None:
        self._connection, self._word, self._times, self._failure = connection, word, times, failure

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith(self._word) and self._times:
            self._times -= 1
            self._failure()
        return self._connection.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def no_room() -> None:
    raise sqlite3.OperationalError("no room")


def fail_at(shop: Shop, word: str, times: int = 1, failure: Callable[[], object] = no_room) -> None:
    database: Any = shop.engine._journal._database
    database._connection = Failing(database._connection, word, times, failure)


def interrupted() -> None:
    raise KeyboardInterrupt


STEPS = ("INSERT INTO", "UPDATE", "DELETE", "PRAGMA incremental_vacuum", "COMMIT")


@pytest.mark.parametrize("failure", [no_room, interrupted])
@pytest.mark.parametrize("word", STEPS)
def test_a_compaction_that_fails(
    shop: Shop, word: str, failure: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a batch would leave copies of rows that are forgotten later."""
    compact_soon(monkeypatch, 5000)
    failed = []

    def fail() -> None:
        failed.append(word)
        failure()

    with pytest.MonkeyPatch.context() as patch:
        original = Database.compact

        def failing(database: Database) -> None:
            connection = database._connection
            fail_at(shop, word, 1, fail)
            with suppress(KeyboardInterrupt):
                original(database)
            database._connection = connection

        patch.setattr(Database, "compact", failing)
        forget_most(shop)
    assert failed
    shop.reopen()
    while len(shop.baskets) > 5:
        shop.happen(Forget(shop.any_basket()[0], None, None))
        shop.clean()
    shop.finish_compaction()
    shop.clean_rows()


# Crashes and errors ---------------------------------------------------------------------------------------------------

KILLED = """
    import os, signal, sqlite3, sys
    import unbasket as ub
    from unbasket.store.writer import Database

    path, user, moment = sys.argv[1:]
    engine = ub.open(path)
    print("ready", flush=True)

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    class KilledConnection:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement, *values):
            if statement.startswith(moment):
                die()
            return self.connection.execute(statement, *values)

        def __getattr__(self, name):
            return getattr(self.connection, name)

    engine._journal._database._connection = KilledConnection(engine._journal._database._connection)
    if moment == "erase":
        Database.erase = die
    engine.forget(user)
"""


KILLED_WHILE_COMPACTING = """
    import os, signal, sys
    import unbasket as ub
    from unbasket.store import compaction, writer

    path, word, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    users = sys.argv[4:]
    writer._WORTH_COMPACTING, writer._PACE, compaction.BATCH_SIZE = 20, 0, 5000
    engine = ub.open(path)
    print("ready", flush=True)

    class KilledConnection:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, statement, *values):
            global count
            answer = self.connection.execute(statement, *values)
            if statement.startswith(word):
                count -= 1
                if count == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return answer

        def __getattr__(self, name):
            return getattr(self.connection, name)

    copy_batch = writer.Database._copy_batch

    def copy_or_die(self, *arguments):
        connection, self._connection = self._connection, KilledConnection(self._connection)
        copy_batch(self, *arguments)
        self._connection = connection

    writer.Database._copy_batch = copy_or_die
    engine.apply([ub.Forget(user, None, None) for user in users])
    while True:
        engine.set_availability(hide=(), show=["nothing"])
"""


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("word", STEPS)
def test_a_compaction_that_is_killed(shop: Shop, word: str, count: int) -> None:
    """No row is lost, and no byte is left of rows that are forgotten before or after."""
    users = [user for user in shop.baskets if len(str(user)) < 50 and not str(user).strip("-").isdecimal()][:-5]
    shop.engine.close()
    arguments = shop.path, word, count, *users
    with pytest.raises(AssertionError), child(KILLED_WHILE_COMPACTING, *arguments) as process:
        assert process.wait() == -signal.SIGKILL
    shop.note(*(Forget(user, None, None) for user in users))
    shop.engine = ub.open(shop.path)
    assert set(shop.engine.users()) == set(shop.baskets)
    shop.clean(thorough=True)
    for user in list(shop.baskets)[3:]:
        shop.happen(Forget(user, None, None))
        shop.clean()
    shop.finish_compaction()
    shop.clean(thorough=True)
    shop.clean_rows()


@pytest.mark.parametrize("moment", ["COMMIT", "erase", "PRAGMA wal_checkpoint"])
@pytest.mark.parametrize("size", [1, 3000])
def test_after_a_crash(shop: Shop, moment: str, size: int) -> None:
    user = shop.ids.text(25)
    shop.happen(Learn(user, [shop.ids.text(12) for _ in range(size)], shop.ids.number(), None))
    shop.engine.close()
    with pytest.raises(AssertionError), child(KILLED, shop.path, user, moment) as process:
        assert process.wait() == -signal.SIGKILL
    shop.engine = ub.open(shop.path)
    assert (user in shop.engine.users()) == (moment == "COMMIT")
    if moment == "COMMIT":
        shop.clean()
        shop.happen(Forget(user, None, None))
    else:
        shop.note(Forget(user, None, None))
    shop.clean()
    shop.clean_rows()


@pytest.mark.parametrize("failure", [no_room, interrupted])
def test_after_a_commit_that_failed(shop: Shop, failure: Callable[[], object]) -> None:
    user, other = list(shop.baskets)[:2]
    fail_at(shop, "COMMIT", 1, failure)
    with pytest.raises((StoreError, KeyboardInterrupt)):
        shop.engine.forget(user)
    shop.clean()
    shop.happen(Forget(other, None, None))
    shop.clean()
    shop.clean_rows()
    shop.happen(Forget(user, None, None))
    shop.clean()
    shop.clean_rows()


def test_a_checkpoint_that_failed_is_tried_again(shop: Shop) -> None:
    fail_at(shop, "PRAGMA wal_checkpoint")
    shop.happen(Forget(next(iter(shop.baskets)), None, None))
    shop.clean()
    shop.clean_rows()


def test_after_checkpoints_that_failed(shop: Shop) -> None:
    user, other = list(shop.baskets)[:2]
    fail_at(shop, "PRAGMA wal_checkpoint", 2)
    with pytest.raises(StoreError):
        shop.happen(Forget(user, None, None))
    shop.happen(Forget(other, None, None))
    shop.clean()
    shop.clean_rows()
