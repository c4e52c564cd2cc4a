"""The keys of a shop: one signs receipts and checkpoints, one seals the rows of the database."""

import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import Self

from unbasket.errors import StoreError
from unbasket.files import real_path, write

_SIZE = 32  # bytes of a key


def signing_keys_of(database: Path) -> Path:
    """Return the default path of the file with the keys of a database."""
    database = real_path(database)
    return database.with_name(database.name + "-keys")


def next_keys_of(keys: Path) -> Path:
    """Return the path of the keys that are to replace those in a file, while the receipt about that is written."""
    return keys.with_name(keys.name + "-next")


class SigningKeys:
    """The keys in a file that only its owner can read, and the origin of the shop's log, which stays if they change."""

    def __init__(self, signing: bytes, rows: bytes, origin: str, checksum: str | None = None) -> None:
        if len(rows) != _SIZE:
            raise ValueError(f"the key for rows has {len(rows)} bytes, not {_SIZE}")
        if checksum not in (None, _checksum(signing, rows, origin)):
            raise ValueError("their checksum is wrong")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._signing = Ed25519PrivateKey.from_private_bytes(signing)
        self.rows = rows
        self.origin = origin
        self.public = self._signing.public_key().public_bytes_raw().hex()

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read the keys in a file."""
        try:
            fields = json.loads(path.read_text())
            signing, rows = bytes.fromhex(fields["signing"]), bytes.fromhex(fields["rows"])
            return cls(signing, rows, str(fields["origin"]), fields["checksum"])
        except FileNotFoundError as error:
            raise StoreError(
                f"{path} is missing: it has the key that signs receipts. Put it back from where you keep a copy. If it "
                "is lost for good, `unbasket receipts rotate-key --lost REASON` makes new keys, and a receipt that "
                "says so"
            ) from error
        except OSError as error:
            raise StoreError(f"cannot read the keys in {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} holds no keys ({error}). Put it back from where you keep a copy. If it is lost for good, "
                "remove it, and see `unbasket receipts rotate-key --lost`"
            ) from error

    @classmethod
    def create(cls, path: Path) -> Self:
        """Write a file with new keys, or no file."""
        keys = cls._new(os.urandom(_SIZE), None)
        keys.write(path)
        return keys

    @classmethod
    def _new(cls, rows: bytes, origin: str | None) -> Self:
        return cls(os.urandom(_SIZE), rows, origin or f"unbasket.local/{os.urandom(8).hex()}")

    def successor(self) -> Self:
        """Return keys with a new key for signing; the log and the seals of rows stay."""
        return self._new(self.rows, self.origin)

    def write(self, path: Path) -> None:
        """Write the keys to a file, or change nothing."""
        signing = self._signing.private_bytes_raw()
        fields = {"signing": signing.hex(), "rows": self.rows.hex(), "origin": self.origin}
        text = json.dumps({**fields, "checksum": _checksum(signing, self.rows, self.origin)}).encode() + b"\n"
        try:
            write(path, text)
        except OSError as error:
            raise StoreError(f"cannot write the keys to {path}: {error.strerror}") from error

    def sign(self, message: bytes) -> bytes:
        """Return the Ed25519 signature of a message."""
        return self._signing.sign(message)


def _checksum(signing: bytes, rows: bytes, origin: str) -> str:
    """Compute a checksum that shows a changed digit, which would be another key."""
    return blake2b(signing + rows + origin.encode(), digest_size=8, person=b"unbasket keys").hexdigest()
