"""The file of keys, which says who may ask the service what. It needs nothing that only a service has.

A key is `unbasket_<name of its record>_<secret>`, of which the file holds a salted hash.
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
    """What a key is good for."""

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


class Access(msgspec.Struct, forbid_unknown_fields=True):
    """The file: the secret that signs tokens, and the keys."""

    secret: _Hex
    key: list[KeyRecord] = []

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """What a file says; None if there is none."""
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
        """No keys yet."""
        return cls(secrets.token_hex(32))

    def add(self, name: str, roles: Iterable[str]) -> str:
        """Make a key; it is shown this once."""
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
        """Take a key back."""
        left = [record for record in self.key if record.name != name]
        if len(left) == len(self.key):
            raise AccessError(f"there is no key {name!r}")
        self.key[:] = left

    @classmethod
    @contextmanager
    def changing(cls, path: Path) -> Iterator[Self]:
        """The keys in a file, to be changed: another process that wants to change them waits for its turn."""
        try:
            with folder_lock(path.resolve().parent):
                access = cls.read(path) or cls.new()
                yield access
                access.write(path)
        except OSError as error:
            raise AccessError(f"cannot write the keys to {path}: {error.strerror}") from error

    def write(self, path: Path) -> None:
        """Replace the file, which only its owner can read: all of it or nothing."""
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
    """A key is random, 256 bits: nobody can try them all, so a fast hash is enough."""
    return blake2b(text.encode(), salt=salt, digest_size=32, person=b"unbasket key").hexdigest()
