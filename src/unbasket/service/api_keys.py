"""The key file: the keys of the service with their roles. It needs none of the service's dependencies.

A key is `unbasket_<name of its record>_<secret>`; the file has a salted hash of it.
"""

import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Self

import msgspec

from unbasket.domain.decoding import decode_toml
from unbasket.errors import AccessError
from unbasket.files import folder_lock, write


class Role(StrEnum):
    """A role of a key."""

    READ = "read"
    WRITE = "write"
    PRIVACY = "privacy"
    ADMIN = "admin"


GRANTS = {
    Role.READ: frozenset({Role.READ}),
    Role.WRITE: frozenset({Role.WRITE}),
    Role.PRIVACY: frozenset({Role.PRIVACY, Role.READ}),
    Role.ADMIN: frozenset(Role),
}
"""The roles that each role includes."""

_NAME = re.compile(r"[A-Za-z0-9.-]{1,64}")
_Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2}){16,32}$")]


class KeyRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A key as it is stored."""

    name: str
    roles: list[Role]
    salt: _Hex
    hash: _Hex


class KeyFile(msgspec.Struct, forbid_unknown_fields=True):
    """The secret that signs tokens, and the keys."""

    secret: _Hex
    key: list[KeyRecord] = []

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a file. Returns None if it does not exist."""
        try:
            return decode_toml(path.read_bytes(), cls)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise AccessError(f"cannot read the keys in {path}: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise AccessError(f"{path} holds no keys: {error}. Restore it, or remove it and make new ones") from error

    @classmethod
    def new(cls) -> Self:
        """Create a key file without keys."""
        return cls(secrets.token_hex(32))

    def add(self, name: str, roles: Iterable[str]) -> str:
        """Add a key and return it; it cannot be shown again."""
        wanted = list(dict.fromkeys(roles))
        if not _NAME.fullmatch(name):
            raise AccessError(f"a key's name has 1 to 64 letters, digits, dots and dashes, unlike {name!r}")
        if not wanted or not set(wanted) <= set(Role):
            raise AccessError(f"a key has roles among {', '.join(Role)}, not {wanted}")
        if any(record.name == name for record in self.key):
            raise AccessError(f"there is a key {name!r} already. Remove it first, or choose another name")
        text, salt = f"unbasket_{name}_{secrets.token_urlsafe(32)}", os.urandom(16)
        self.key.append(KeyRecord(name, list(map(Role, wanted)), salt.hex(), hashed(text, salt)))
        return text

    def remove(self, name: str) -> None:
        """Remove a key."""
        left = [record for record in self.key if record.name != name]
        if len(left) == len(self.key):
            raise AccessError(f"there is no key {name!r}")
        self.key[:] = left

    @classmethod
    @contextmanager
    def changing(cls, path: Path) -> Iterator[Self]:
        """Read a file, and write it when the block ends. Other processes that change it wait."""
        try:
            with folder_lock(path.resolve().parent):
                key_file = cls.read(path) or cls.new()
                yield key_file
                key_file.write(path)
        except OSError as error:
            raise AccessError(f"cannot write the keys to {path}: {error.strerror}") from error

    def write(self, path: Path) -> None:
        """Replace the file atomically. Only its owner can read it."""
        records = [
            f'\n[[key]]\nname = "{key.name}"\nroles = {list(map(str, key.roles))}\n'
            f'salt = "{key.salt}"\nhash = "{key.hash}"\n'
            for key in self.key
        ]
        try:
            write(path, (f'secret = "{self.secret}"\n' + "".join(records)).encode())
        except OSError as error:
            raise AccessError(f"cannot write the keys to {path}: {error.strerror}") from error


def hashed(text: str, salt: bytes) -> str:
    """Hash a key. Keys have 256 random bits, so a fast hash is safe."""
    return blake2b(text.encode(), salt=salt, digest_size=32, person=b"unbasket key").hexdigest()
