"""Rows of the database: the encoding of a basket, and the checksum that shows damage.

A row holds all that is known of one basket, ids included, and no other row does: zeroing it erases the basket.
"""

from zlib import crc32

import msgspec

from unbasket.domain.ids import Id
from unbasket.errors import StoreCorruptError

STEP = 2**20
"""The distance between the positions of neighboring rows: room for baskets that come late."""

TABLES = ("settings", "baskets", "products", "receipts", "hidden", "suppressed")

CHECKSUM_SIZE = 4
"""Bytes of a row's checksum."""

TABLE_SEEDS = {table: crc32(table.encode()) for table in TABLES}
"""The start values of the checksums of a table's rows; the row number is added."""


class BasketRow(msgspec.Struct, array_like=True, gc=False):
    """A basket on disk.

    Within a user, baskets are sorted by *position*. A row's own position is its number times STEP; `shift` is the
    basket's distance from there, which is 0 unless it was edited or came late.
    """

    user: Id
    basket: Id
    time: int | None
    shift: int
    opens: bool
    items: list[Id]


_decoder = msgspec.msgpack.Decoder(BasketRow)

encode_basket = msgspec.msgpack.Encoder().encode


def decode_basket(payload: bytes) -> BasketRow:
    """Decode the basket in a payload."""
    try:
        return _decoder.decode(payload)
    except msgspec.DecodeError as error:  # the checksum is right, so this is not damage
        raise StoreCorruptError(f"a row holds no basket: {error}; it was written by something else") from error


def position_of(row: int, basket: BasketRow) -> int:
    """Return where the basket of a row sorts among its user's."""
    return row * STEP + basket.shift


def with_checksum(table: str, row: int, payload: bytes) -> tuple[bytes, int]:
    """Return the body of a row, which is the checksum and the payload, and the checksum."""
    checksum = _checksum(table, row, payload)
    return checksum.to_bytes(CHECKSUM_SIZE, "big") + payload, checksum


def checksum_of(body: bytes) -> int:
    """Return the checksum in a body; 0 for a zeroed row."""
    return int.from_bytes(body[:CHECKSUM_SIZE], "big")


def checked_payload(table: str, row: int, body: bytes) -> bytes:
    """Return the payload of a body, which is empty if the row was zeroed; an error if the row is damaged."""
    try:
        payload = body[CHECKSUM_SIZE:]
        if payload[:1] == b"\0":  # no payload starts like this
            payload = b""
            damaged = any(body)
        else:
            damaged = _checksum(table, row, payload) != checksum_of(body)
    except TypeError:  # damage can turn bytes into something else
        damaged = True
    if damaged:
        raise StoreCorruptError(f"row {row} of {table} is damaged: its checksum is wrong. Restore a backup")
    return payload


def _checksum(table: str, row: int, payload: bytes) -> int:
    """Compute a checksum that differs for the same payload in different rows."""
    return crc32(payload, TABLE_SEEDS[table] + row & 0xFFFFFFFF)
