"""Rows against zlib's checksums and msgspec's MessagePack; tests/store/test_row_codec.py has more baskets."""

from hashlib import blake2s
from zlib import crc32

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from unbasket.core.codec import RowReader

KEY = bytes(range(32))
STEP, SEED = 100, 0xFFFFFFF0  # with the number of a row, the seed exceeds 32 bits

bodies = st.tuples(st.text(min_size=1, max_size=40), st.integers(0, 9), st.lists(st.integers(0, 9), min_size=1))


def row_of(number: int, user: str, shift: int, items: list[int]) -> tuple[int, bytes]:
    payload = msgspec.msgpack.encode((user, 7, None, shift, False, items))
    payload += blake2s(number.to_bytes(8, "big") + payload, key=KEY, digest_size=8, person=b"baskets").digest()
    return number, crc32(payload, SEED + number & 0xFFFFFFFF).to_bytes(4, "big") + payload


@given(st.lists(bodies, min_size=1, max_size=9), st.integers(0, 9))
def test_rows_with_checksums_of_zlib_are_counted(baskets: list[tuple[str, int, list[int]]], upto: int) -> None:
    rows = [row_of(number, *basket) for number, basket in enumerate(baskets, 1)]
    checksums = [int.from_bytes(body[:4], "big") for _, body in rows]
    reader = RowReader(SEED, STEP, upto, KEY)
    assert RowReader(SEED, STEP, upto, KEY[::-1]).add(rows) == 0
    assert reader.add([*rows, (99, bytes(20))]) == -1
    assert (reader.count, reader.checksums, reader.zeroed) == (len(rows), sum(checksums), 20)
    assert (reader.count_since, reader.checksums_since) == (len(rows[upto:]), sum(checksums[upto:]))
    assert reader.size == sum(len(body) for _, body in rows)
    users, items, texts, columns = reader.columns()
    assert [users[owner] for owner in columns["owners"]] == [user for user, _, _ in baskets]
    assert [items[item] for item in columns["purchases"]] == [item for _, _, bought in baskets for item in bought]
    assert columns["positions"].tolist() == [number * STEP + shift for number, (_, shift, _) in enumerate(baskets, 1)]
    assert texts is None


@given(bodies, st.data())
def test_a_damaged_row_is_found(basket: tuple[str, int, list[int]], data: st.DataObject) -> None:
    number, body = row_of(2, *basket)
    bit = data.draw(st.integers(0, 8 * len(body) - 1))
    damaged = bytearray(body)
    damaged[bit // 8] ^= 1 << bit % 8
    assert RowReader(SEED, STEP, 0).add([row_of(1, *basket), (number, bytes(damaged))]) == 1
    assert RowReader(SEED, STEP, 0).add([(number + 1, body)]) == 0
