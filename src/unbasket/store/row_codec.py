"""Rows of the database: what a basket looks like on disk, and the seal that shows damage.

A row holds all that is known of one basket, ids included, and nothing else does: blanking it erases the basket.
"""

from zlib import crc32

import msgspec

from unbasket.domain.ids import Id
from unbasket.errors import StoreCorruptError

STEP = 2**20
"""The distance between the places of neighboring rows: room for baskets that come late."""

TABLES = ("settings", "baskets", "products", "receipts", "hidden", "suppressed")

SEAL = 4
"""Bytes of a row's checksum."""

SALTS = {table: crc32(table.encode()) for table in TABLES}
"""Where the checksums of a table's rows start, with the number of the row added."""


class BasketRow(msgspec.Struct, array_like=True, gc=False):
    """A basket on disk.

    Within a user, baskets are in the order of their *places*. A row's own place is its number times STEP; `shift` is
    how far from there the basket stands, which is 0 unless it was edited or came late.
    """

    user: Id
    basket: Id
    time: int | None
    shift: int
    opens: bool
    items: list[Id]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(BasketRow)

encode_basket = _encoder.encode


def decode_basket(payload: bytes) -> BasketRow:
    """The basket in a payload."""
    try:
        return _decoder.decode(payload)
    except msgspec.DecodeError as error:  # the seal is right, so this is not damage
        raise StoreCorruptError(f"a row holds no basket: {error}; it was written by something else") from error


def place_of(row: int, basket: BasketRow) -> int:
    """Where the basket of a row stands among its user's."""
    return row * STEP + basket.shift


def sealed(table: str, row: int, payload: bytes) -> tuple[bytes, int]:
    """The payload with its checksum in front, and the checksum."""
    seal = _checksum(table, row, payload)
    return seal.to_bytes(SEAL, "big") + payload, seal


def seal_of(body: bytes) -> int:
    """The checksum that a body claims; for an erased row, that is 0."""
    return int.from_bytes(body[:SEAL], "big")


def unsealed(table: str, row: int, body: bytes) -> bytes:
    """The payload of a body, which is empty if the row was erased; an error if it is not what was written."""
    try:
        payload = body[SEAL:]
        if payload[:1] == b"\0":  # no payload starts like this
            payload = b""
            damaged = any(body)
        else:
            damaged = _checksum(table, row, payload) != seal_of(body)
    except TypeError:  # damage can turn bytes into something else
        damaged = True
    if damaged:
        raise StoreCorruptError(f"row {row} of {table} is damaged: its checksum is wrong. Restore a backup")
    return payload


def _checksum(table: str, row: int, payload: bytes) -> int:
    """A checksum that tells apart the same payload in different rows."""
    return crc32(payload, SALTS[table] + row & 0xFFFFFFFF)
