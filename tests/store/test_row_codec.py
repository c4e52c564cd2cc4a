from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import unbasket as ub
from unbasket import StoreCorruptError
from unbasket.core import BasketRowWriter
from unbasket.store.loading import BasketReader, orders_of
from unbasket.store.row_codec import SALTS, BasketRow, decode_basket, encode_basket, place_of, sealed, unsealed

IDS = st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
BASKETS = st.builds(
    BasketRow,
    user=IDS,
    basket=IDS,
    time=st.none() | st.integers(-(2**63) + 1, 2**63 - 1),
    shift=st.integers(-(2**60), 0),
    opens=st.booleans(),
    items=st.lists(IDS, min_size=1, max_size=9),
)


@given(st.lists(BASKETS, max_size=5))
def test_baskets_come_back_as_they_were(baskets: list[BasketRow]) -> None:
    payloads = [encode_basket(basket) for basket in baskets]
    assert [decode_basket(payload) for payload in payloads] == baskets
    reader = BasketReader(0)
    reader.read([(row, sealed("baskets", row, payload)[0]) for row, payload in enumerate(payloads, 1)])
    orders, rows = reader.orders()
    expected, places = orders_of(enumerate(baskets, 1))
    assert [*orders.histories(np.arange(len(orders.users)))] == [*expected.histories(np.arange(len(orders.users)))]
    assert orders.opens.tolist() == expected.opens.tolist()
    assert rows.tolist() == places.tolist()


@given(st.lists(BASKETS, max_size=5))
def test_a_bulk_of_baskets_is_written_as_one_by_one(baskets: list[BasketRow]) -> None:
    orders, rows = orders_of(enumerate((replace(basket, shift=0) for basket in baskets), 1))
    written = BasketRowWriter(orders, SALTS["baskets"]).take(1, 10)
    alone = [replace(baskets[row - 1], shift=0) for row in rows]
    assert written == [(row, sealed("baskets", row, encode_basket(b))[0]) for row, b in enumerate(alone, 1)]


@given(BASKETS, st.integers(1, 2**40), st.data())
def test_any_changed_bit_shows(basket: BasketRow, row: int, data: st.DataObject) -> None:
    body, _ = sealed("baskets", row, encode_basket(basket))
    assert unsealed("baskets", row, body) == encode_basket(basket)
    bit = data.draw(st.integers(0, 8 * len(body) - 1))
    damaged = bytearray(body)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(StoreCorruptError, match=f"row {row} of baskets is damaged"):
        unsealed("baskets", row, bytes(damaged))


def test_a_row_is_sealed_for_its_place() -> None:
    payload = encode_basket(BasketRow(1, 2, 3, 0, False, [4]))
    body, _ = sealed("baskets", 7, payload)
    for table, row in (("baskets", 8), ("products", 7)):
        with pytest.raises(StoreCorruptError):
            unsealed(table, row, body)


def test_an_erased_row_is_told_from_a_damaged_one() -> None:
    assert unsealed("baskets", 7, bytes(20)) == b""
    for body in (b"\1" + bytes(19), bytes(19) + b"\1", b"", bytes(3)):
        with pytest.raises(StoreCorruptError):
            unsealed("baskets", 7, body)


def test_what_is_no_basket_is_refused() -> None:
    with pytest.raises(StoreCorruptError, match="holds no basket"):
        decode_basket(b"\x93\x01\x02\x03")
    with pytest.raises(StoreCorruptError, match="holds no basket"):
        BasketReader(0).read([(1, sealed("baskets", 1, b"\x93\x01\x02\x03")[0])])


def test_places_follow_row_numbers() -> None:
    first, second = BasketRow(1, 2, None, 0, False, [1]), BasketRow(1, 3, None, -5, False, [1])
    assert place_of(1, first) < place_of(2, second) < place_of(2, first)


def item_that_makes_the_checksum_zero(row: int, user: str) -> int:
    """Checksums are linear: of the 32 bits of an item, the last bytes of a row, some set makes any checksum."""

    def checksum(item: int) -> int:
        payload = encode_basket(BasketRow(user, 1, None, 0, False, [2**31 | item]))
        return sealed("baskets", row, payload)[1]

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


def test_a_row_whose_checksum_happens_to_be_zero(tmp_path: Path) -> None:
    """It is not taken for an erased one, nor for a damaged one."""
    path = tmp_path / "shop.db"
    for number in range(100):  # of 31 bits, half of all users can be served
        try:
            item = item_that_makes_the_checksum_zero(2, f"user {number}")
            break
        except KeyError:
            continue
    with ub.open(path) as rec:
        rec.learn("ann", ["milk"], basket=1)
        rec.learn(f"user {number}", [item], basket=1)
        digest = rec.digest()
        [body] = rec._journal._database._connection.execute("SELECT body FROM baskets WHERE id = 2").fetchone()
        assert body[:4] == bytes(4)
        for read_only in (True, False):
            crashed = copied(path, tmp_path / str(read_only))
            with ub.open(crashed, read_only=read_only) as again:
                assert again.digest() == digest
    with ub.open(path) as rec:
        assert rec.digest() == digest
        assert rec.forget(f"user {number}") == (1, 1, 1)
    with ub.open(path) as rec:
        assert rec.users() == ["ann"]


def copied(path: Path, folder: Path) -> Path:
    """The files of a database that is open, as a crash would leave them."""
    folder.mkdir()
    for file in path.parent.glob("shop.db*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder / "shop.db"
