"""The encoding of rows, and their checksums."""

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbasket as ub
from unbasket import StoreCorruptError
from unbasket.core.codec import RowReader
from unbasket.store.reader import decode_baskets
from unbasket.store.row_codec import (
    STEP,
    TABLE_SEEDS,
    BasketRow,
    checked_payload,
    decode_basket,
    encode_basket,
    position_of,
    with_checksum,
)

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
IDS = NUMBERS | TEXTS


def baskets_of(users: Any, baskets: Any, items: Any) -> st.SearchStrategy[BasketRow]:
    """Return baskets whose ids are drawn from these strategies."""
    return st.builds(
        BasketRow,
        user=users,
        basket=baskets,
        time=st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
        shift=st.integers(-(2**60), 0),
        opens=st.booleans(),
        items=st.lists(items, min_size=1, max_size=9),
    )


BASKETS = baskets_of(IDS, IDS, IDS)
BASKET_LISTS = st.one_of(
    [st.lists(baskets_of(*kinds), max_size=5) for kinds in itertools.product((NUMBERS, TEXTS), repeat=3)]
)
"""Baskets with one type of id for each kind."""


@given(BASKETS, st.integers(1, 2**40), st.data())
def test_any_changed_bit_shows(basket: BasketRow, row: int, data: st.DataObject) -> None:
    body, _ = with_checksum("baskets", row, encode_basket(basket))
    assert checked_payload("baskets", row, body) == encode_basket(basket)
    bit = data.draw(st.integers(0, 8 * len(body) - 1))
    damaged = bytearray(body)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(StoreCorruptError, match=f"row {row} of baskets is damaged"):
        checked_payload("baskets", row, bytes(damaged))


def test_a_checksum_is_valid_in_one_row_only() -> None:
    payload = encode_basket(BasketRow(1, 2, 3, 0, False, [4]))
    body, _ = with_checksum("baskets", 7, payload)
    for table, row in (("baskets", 8), ("products", 7)):
        with pytest.raises(StoreCorruptError):
            checked_payload(table, row, body)


def test_a_zeroed_row_is_not_a_damaged_one() -> None:
    assert checked_payload("baskets", 7, bytes(20)) == b""
    for body in (b"\1" + bytes(19), bytes(19) + b"\1", b"", bytes(3)):
        with pytest.raises(StoreCorruptError):
            checked_payload("baskets", 7, body)


def test_a_payload_without_a_basket_is_an_error() -> None:
    with pytest.raises(StoreCorruptError, match="holds no basket"):
        decode_basket(b"\x93\x01\x02\x03")
    with pytest.raises(StoreCorruptError, match="holds no basket"):
        decode_baskets(
            RowReader(TABLE_SEEDS["baskets"], STEP, 0), [(1, with_checksum("baskets", 1, b"\x93\x01\x02\x03")[0])]
        )


def test_positions_follow_row_numbers() -> None:
    first, second = BasketRow(1, 2, None, 0, False, [1]), BasketRow(1, 3, None, -5, False, [1])
    assert position_of(1, first) < position_of(2, second) < position_of(2, first)


def item_that_makes_the_checksum_zero(row: int, user: str) -> int:
    """Find an item for a checksum of 0: checksums are linear, and the 32 bits of an item end the row."""

    def checksum(item: int) -> int:
        payload = encode_basket(BasketRow(user, 1, None, 0, False, [2**31 | item]))
        return with_checksum("baskets", row, payload)[1]

    goal, basis = checksum(0), dict[int, tuple[int, int]]()  # by their highest bit: checksums, and items that add them
    for bit in range(31):
        effect, item = checksum(1 << bit) ^ goal, 1 << bit
        while effect and effect.bit_length() in basis:
            other = basis[effect.bit_length()]
            effect, item = effect ^ other[0], item ^ other[1]
        basis[effect.bit_length()] = effect, item
    found = 0
    while goal:
        effect, item = basis[goal.bit_length()]
        goal, found = goal ^ effect, found ^ item
    return 2**31 | found


def test_a_row_whose_checksum_happens_to_be_zero() -> None:
    """It is not taken for a zeroed row, nor for a damaged one."""
    for number in range(100):  # with 31 bits, there is an item for every other user
        try:
            item = item_that_makes_the_checksum_zero(2, f"user {number}")
            break
        except KeyError:
            continue
    payload = encode_basket(BasketRow(f"user {number}", 1, None, 0, False, [item]))
    body, checksum = with_checksum("baskets", 2, payload)
    assert (checksum, body[:4]) == (0, bytes(4))
    assert checked_payload("baskets", 2, body) == payload
    reader = RowReader(TABLE_SEEDS["baskets"], STEP, 0)
    assert reader.add([(2, body)]) == -1
    assert (reader.count, reader.zeroed) == (1, 0)


def test_a_forged_row_shows(tmp_path: Path) -> None:
    """A row that someone without the key has changed has a right checksum, and a wrong seal."""
    path = tmp_path / "shop.db"
    with ub.open(path) as rec:
        rec.learn("ann", ["milk"], basket=1)
    forged, _ = with_checksum("baskets", 1, encode_basket(BasketRow("ann", 1, None, 0, False, ["wine"])), bytes(32))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE baskets SET body = ? WHERE id = 1", (forged,))
    for read_only in (True, False):
        with pytest.raises(StoreCorruptError, match="row 1 of baskets is damaged: its checksum or seal is wrong"):
            ub.open(path, read_only=read_only)


def copied(path: Path, folder: Path) -> Path:
    """Copy the files of a database that is open, as a crash would leave them."""
    folder.mkdir()
    for file in path.parent.glob("shop.db*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder / "shop.db"
