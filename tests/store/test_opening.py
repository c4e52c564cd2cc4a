"""Opening: parameters, readers and writers, and files that are not a database."""

from pathlib import Path

import pytest
from tests.laws import law_of_equality
from tests.store.test_durable import SHOP
from tests.store.test_faults import digest_of, filled

import unbasket as ub
from unbasket.errors import (
    StoreError,
    StoreVersionError,
)
from unbasket.store import writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def test_parameters_are_kept(path: Path) -> None:
    params = ub.Params(group_size=3, basket_decay=0.8, group_decay=0.6, neighbors=5, alpha=0.25, grouping="varying")
    ub.open(path, params).close()
    with ub.open(path) as rec:
        assert rec.params == params
    ub.open(path, params).close()
    with pytest.raises(ub.InvalidParamsError, match=r"alpha=0\.25.*not.*alpha=0\.5"):
        ub.open(path, ub.Params(alpha=0.5))
    with ub.open(path) as rec:  # the error left no lock
        assert rec.params == params


def test_an_empty_shop_can_be_opened_again(path: Path) -> None:
    ub.open(path).close()
    with ub.open(path) as rec:
        assert (len(rec), rec.users(), rec.receipts()) == (0, [], [])
        assert rec.digest() == ub.Recommender().digest()


def test_one_writer_and_many_readers(path: Path) -> None:
    with ub.open(path).fit(SHOP) as rec:
        with pytest.raises(ub.StoreLockedError, match=r"open for writing in another place .* read_only=True"):
            ub.open(path)
        first, second = (ub.open(path, read_only=True) for _ in range(2))
        law_of_equality(rec, first)
        rec.learn("ann", ["tea"], basket=9)
        assert first.digest() == second.digest() != rec.digest() == ub.open(path, read_only=True).digest()
        for write in (
            lambda: first.learn("ann", ["tea"], basket=9),
            lambda: first.forget("ann"),
            lambda: first.fit(SHOP),
            lambda: first.apply([]),
        ):
            with pytest.raises(ub.StoreError, match="read_only=True"):
                write()


def test_a_reader_needs_a_file(path: Path) -> None:
    with pytest.raises(ub.StoreError, match="does not exist"):
        ub.open(path, read_only=True)
    assert not path.exists()


@pytest.mark.parametrize("read_only", [True, False])
def test_no_database(path: Path, read_only: bool) -> None:
    path.write_bytes(b"user,basket,item\n" * 1000)
    with pytest.raises(StoreVersionError, match="not a database"):
        ub.open(path, read_only=read_only)
    assert path.read_bytes() == b"user,basket,item\n" * 1000


def test_an_empty_file(path: Path) -> None:
    """It becomes a new database; there is nothing to read in it."""
    path.touch()
    with pytest.raises(StoreVersionError):
        ub.open(path, read_only=True)
    with ub.open(path) as engine:
        engine.learn("ann", ["milk"], basket=1)
        digest = engine.digest()
    assert digest_of(path) == digest


def test_an_unfinished_database(path: Path) -> None:
    """Its creator was killed before it had parameters: a reader gets an error, a writer finishes it."""
    writer.Database(path, read_only=False).abandon()
    with pytest.raises(StoreError, match="has no parameters"):
        ub.open(path, read_only=True)
    with ub.open(path, ub.Params(group_size=2, alpha=0.8)) as engine:
        assert engine.params.group_size == 2


@pytest.mark.parametrize("read_only", [True, False])
def test_a_short_text(path: Path, read_only: bool) -> None:
    """SQLite would take it for an empty file."""
    path.write_text("do not lose me")
    with pytest.raises(StoreVersionError, match="not a database"):
        ub.open(path, read_only=read_only)
    assert path.read_text() == "do not lose me"


def test_a_database_that_became_empty(path: Path) -> None:
    """Where there are keys, there was a database: an empty file is an error then."""
    filled(path)
    path.write_bytes(b"")
    for read_only in (True, False, False):
        with pytest.raises(StoreError):
            ub.open(path, read_only=read_only)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("read_only", [True, False])
def test_a_directory(path: Path, read_only: bool) -> None:
    path.mkdir()
    with pytest.raises(StoreError, match="is a directory"):
        ub.open(path, read_only=read_only)


@pytest.mark.parametrize("read_only", [True, False])
def test_no_directory(path: Path, read_only: bool) -> None:
    with pytest.raises(StoreError):
        ub.open(path / "deep" / "shop.db", read_only=read_only)
