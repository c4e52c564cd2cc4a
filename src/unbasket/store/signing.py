"""The keys of a shop: one signs receipts, one pseudonymizes their subjects."""

import errno
import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import Self

from unbasket.domain.ids import Id
from unbasket.errors import StoreError
from unbasket.files import real_path, write

_SIZE = 32  # bytes of a key


def signing_keys_of(database: Path) -> Path:
    """Return the default path of the file with the keys of a database."""
    database = real_path(database)
    return database.with_name(database.name + "-keys")


class SigningKeys:
    """The two keys in a file that only its owner can read.

    A receipt names its subject by a hash under the second key. Destroying that key makes all receipts anonymous.
    """

    def __init__(self, signing: bytes, subjects: bytes, checksum: str | None = None) -> None:
        if len(subjects) != _SIZE:
            raise ValueError(f"the key for subjects has {len(subjects)} bytes, not {_SIZE}")
        if checksum not in (None, _checksum(signing, subjects)):
            raise ValueError("their checksum is wrong")
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._signing = Ed25519PrivateKey.from_private_bytes(signing)
        self._subjects = subjects
        self.public = self._signing.public_key().public_bytes_raw().hex()

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read the keys in a file, which is created if it does not exist."""
        try:
            fields = json.loads(path.read_text())
            return cls(bytes.fromhex(fields["signing"]), bytes.fromhex(fields["subjects"]), fields.get("checksum"))
        except FileNotFoundError:
            _create(path)
            return cls.of(path)
        except OSError as error:
            raise StoreError(f"cannot read the keys in {path}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{path} holds no keys ({error}). Restore it, or remove it to have new ones made: receipts that were "
                "signed before stay valid under the old public key"
            ) from error

    @classmethod
    def destroy_subjects(cls, path: Path) -> Self:
        """Overwrite the key for subjects by a new one: from then on, no receipt can be traced to a person."""
        keys = cls.of(path)
        _overwrite(path, _text(keys._signing.private_bytes_raw(), os.urandom(_SIZE)))
        return cls.of(path)

    def sign(self, message: bytes) -> bytes:
        """Return the Ed25519 signature of a message."""
        return self._signing.sign(message)

    def subject(self, user: Id) -> str:
        """Return the pseudonym of a user, which only the key can link to the user: the same for 17 and "17"."""
        return blake2b(
            repr(str(user)).encode(), key=self._subjects, digest_size=16, person=b"unbasket subject"
        ).hexdigest()


def _create(path: Path) -> None:
    """Write a file with two new keys, or no file."""
    try:
        write(path, _text(os.urandom(_SIZE), os.urandom(_SIZE)))
    except OSError as error:
        raise StoreError(f"cannot write the keys to {path}: {error.strerror}") from error


def _text(signing: bytes, subjects: bytes) -> bytes:
    fields = {"signing": signing.hex(), "subjects": subjects.hex(), "checksum": _checksum(signing, subjects)}
    return json.dumps(fields).encode() + b"\n"


def _checksum(signing: bytes, subjects: bytes) -> str:
    """Compute a checksum that shows a changed digit, which would be another key."""
    return blake2b(signing + subjects, digest_size=8, person=b"unbasket keys").hexdigest()


def _overwrite(path: Path, text: bytes) -> None:
    """Write in place: the length never changes, so old keys are overwritten and not left in a freed block."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            if os.pwrite(file, text, 0) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise StoreError(f"cannot write the keys to {path}: {error.strerror}") from error
