"""Versions and tables: files that this version can't read."""

import sqlite3
from pathlib import Path

import pytest
from tests.store.test_faults import filled, sound, use

import unbasket as ub
from unbasket.errors import (
    StoreError,
    StoreVersionError,
)
from unbasket.store import schema

__all__ = ["sound"]  # a fixture


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.mark.parametrize("read_only", [True, False])
def test_an_older_version(path: Path, read_only: bool) -> None:
    """It is not migrated: the program that made it can write its baskets."""
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema._VERSION - 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreVersionError, match=rf"has version {schema._VERSION - 1}, .*With the version of unbasket that made it"
    ):
        ub.open(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_newer_version(path: Path) -> None:
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema._VERSION + 1}")
    connection.close()
    for read_only in (True, False):
        with pytest.raises(StoreVersionError, match="Upgrade unbasket"):
            ub.open(path, read_only=read_only)


@pytest.mark.parametrize("column", [b"INTEGES PRIMARY", b"INTEGER FRIMARY"])
def test_other_columns(sound: tuple[bytes, str, Path], path: Path, column: bytes) -> None:
    data, digest, _ = sound
    path.write_bytes(data.replace(b"INTEGER PRIMARY", column, 1))
    for writing in (False, True):
        with pytest.raises(StoreError):
            use(path, digest, writing)


@pytest.mark.parametrize("read_only", [True, False])
def test_another_programs_database(path: Path, read_only: bool) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE baskets (id INTEGER PRIMARY KEY, body BLOB)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match="not a database of unbasket"):
        ub.open(path, read_only=read_only)
    assert path.read_bytes() == before
