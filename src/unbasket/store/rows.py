"""Rows of the database: what a basket looks like on disk, and the seal that shows damage.

A row holds all that is known of one basket, ids included, and nothing else does: blanking it erases the basket.
"""

from zlib import crc32

import msgspec

from unbasket.errors import StoreCorruptError
from unbasket.ids import Id

STEP = 2**20
"""The distance between the places of rows that are next to each other: room for baskets that come late."""

_SEAL = 4


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
    except msgspec.DecodeError as error:  # of a sealed row, this can't be damage
        raise StoreCorruptError(f"a row holds no basket: {error}; it was written by something else") from error


def place_of(row: int, basket: BasketRow) -> int:
    """Where the basket of a row stands among its user's."""
    return row * STEP + basket.shift


def checksum(table: str, row: int, payload: bytes) -> int:
    """A checksum that tells apart the same payload in different rows."""
    return crc32(payload, crc32(f"{table} {row}".encode()))


def sealed(table: str, row: int, payload: bytes) -> bytes:
    """The payload with its checksum in front."""
    return checksum(table, row, payload).to_bytes(_SEAL, "big") + payload


def seal_of(body: bytes) -> int:
    """The checksum that a body claims."""
    return int.from_bytes(body[:_SEAL], "big")


def unsealed(table: str, row: int, body: bytes) -> bytes:
    """The payload of a body, which is empty if the row was erased; an error if it is not what was written."""
    payload = body[_SEAL:]
    if checksum(table, row, payload) != seal_of(body):
        if not any(body):
            return b""
        raise StoreCorruptError(f"row {row} of {table} is damaged: its checksum is wrong. Restore a backup")
    return payload
