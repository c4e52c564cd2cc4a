"""Rows of the database: the encoding of a basket, the checksum that shows damage, and the seal that shows forgery.

A row holds all that is known of one basket, ids included, and no other row does: zeroing it erases the basket.
"""

from hashlib import blake2s
from zlib import crc32

import msgspec

from unbasket.domain.ids import Id
from unbasket.errors import StoreCorruptError

STEP = 2**20
"""The distance between the positions of neighboring rows: room for baskets that come late."""

TABLES = ("settings", "baskets", "products", "receipts", "hidden", "suppressed")

CHECKSUM_SIZE = 4
"""Bytes of a row's checksum."""

SEAL_SIZE = 8
"""Bytes of a row's seal, a keyed hash at its end."""

TABLE_SEEDS = {table: crc32(table.encode()) for table in (*TABLES, "cursors")}
"""The start values of the checksums of a table's rows, and of the cursors; the row number is added."""


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


def with_checksum(table: str, row: int, payload: bytes, key: bytes | None = None) -> tuple[bytes, int]:
    """Return the body of a row, which is the checksum, the payload and the seal, and the checksum."""
    sealed = payload + (_seal(table, row, payload, key) if key else bytes(SEAL_SIZE))
    checksum = _checksum(table, row, sealed)
    return checksum.to_bytes(CHECKSUM_SIZE, "big") + sealed, checksum


def checksum_of(body: bytes) -> int:
    """Return the checksum in a body; 0 for a zeroed row."""
    return int.from_bytes(body[:CHECKSUM_SIZE], "big")


def checked_payload(table: str, row: int, body: bytes, key: bytes | None = None) -> bytes:
    """Return the payload of a body, which is empty if the row was zeroed; an error if the row is damaged or forged.

    Without the key, seals are not checked.
    """
    try:
        sealed = body[CHECKSUM_SIZE:]
        payload, seal = sealed[:-SEAL_SIZE], sealed[-SEAL_SIZE:]
        if sealed[:1] == b"\0":  # no payload starts like this
            payload = b""
            damaged = any(body)
        else:
            damaged = _checksum(table, row, sealed) != checksum_of(body)
            damaged = damaged or (key is not None and seal != _seal(table, row, payload, key))
    except TypeError:  # damage can turn bytes into something else
        damaged = True
    if damaged:
        raise StoreCorruptError(
            f"row {row} of {table} is damaged: its checksum or seal is wrong. Restore a backup, and check that the "
            "keys beside the database are its own"
        )
    return payload


def _checksum(table: str, row: int, sealed: bytes) -> int:
    """Compute a checksum that differs for the same payload in different rows."""
    return crc32(sealed, TABLE_SEEDS[table] + row & 0xFFFFFFFF)


def _seal(table: str, row: int, payload: bytes, key: bytes) -> bytes:
    """Compute a seal that only the key can make, for this row only."""
    person = table.encode()[:8]
    return blake2s(row.to_bytes(8, "big") + payload, key=key, digest_size=SEAL_SIZE, person=person).digest()
