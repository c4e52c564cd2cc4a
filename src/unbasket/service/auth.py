"""Who may do what: keys with roles, and short-lived tokens for one shopper each.

A token is `v1.<payload>.<mac>`; the payload names the shopper and the moment it ends.
"""

import hmac
import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Self

import msgspec

from unbasket.domain.id_text import matches_id
from unbasket.domain.ids import Id
from unbasket.errors import AccessError
from unbasket.service import logs
from unbasket.service.api_keys import GRANTS, Access, Role, hashed
from unbasket.service.errors import ApiError

_LOOK_AGAIN = 1.0  # seconds after which a changed file of keys is noticed
_OWN_SITE = (b"same-origin", b"none")  # none: the person at the browser asks, not a page
_HERE = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)


class Caller(msgspec.Struct, frozen=True):
    """Who asks: a key with what its roles grant, or one shopper. Who needs no key has no name."""

    name: str
    grants: frozenset[Role] = frozenset()
    shopper: Id | None = None

    def check(self, roles: Collection[Role], own: str | None) -> None:
        """Refuse what needs other roles. `own` is the user in the path of a call that shoppers may use."""
        if self.shopper is None:
            if self.grants.isdisjoint(roles):
                raise ApiError("forbidden", f"this needs a key with the role {' or '.join(sorted(roles))}")
        elif own is None or not matches_id(own, self.shopper):  # the same answer, whatever it asks for
            raise ApiError("forbidden", "this token is for the data of one shopper only")


class Security:
    """Tells who asks. Without keys everybody is an admin, and the service must only listen on loopback."""

    def __init__(self, path: Path | None, access: Access | None) -> None:
        self.enabled = False  # whether a key is needed
        self._path = path
        self._seen = self._state()
        self._problem = ""  # why the file, which has changed, could not be read
        self._next_look = time.monotonic() + _LOOK_AGAIN
        self._hold(access)

    @classmethod
    def load(cls, path: Path) -> Self:
        """With the keys in a file, which is read again when it changes; without any if there is no file."""
        security = cls(path, None)
        security._hold(Access.read(path))
        return security

    @classmethod
    def off(cls) -> Self:
        """Without keys."""
        return cls(None, None)

    def reload(self) -> None:
        """Read the file of keys again."""
        self._problem = ""
        if self._path is not None:
            self._read(self._path)

    def identify(self, headers: Mapping[bytes, bytes]) -> Caller:
        """Who sends a request with these headers; an error if nobody may."""
        self._look_again()
        if not self.enabled:
            _check_origin(headers)
        authorization = headers.get(b"authorization")
        if authorization is None:
            if self.enabled:
                raise _unauthenticated("this needs a key: Authorization: Bearer ...")
            return _EVERYBODY
        scheme, _, text = authorization.decode("latin-1").partition(" ")
        caller = self._caller(text.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            raise _unauthenticated("this key or token is not valid, or no longer is")
        return caller

    def issue(self, user: Id, seconds: int) -> tuple[str, int]:
        """A token for a shopper, and the Unix time at which it ends."""
        ends = int(time.time()) + seconds
        payload = "v1." + _encoded(msgspec.json.encode(_Pass(user, ends)))
        return f"{payload}.{self._mac(payload)}", ends

    def _caller(self, text: str) -> Caller | None:
        return self._shopper(text) if text.startswith("v1.") else self._owner(text)

    def _owner(self, text: str) -> Caller | None:
        _, _, rest = text.partition("_")
        record = self._keys.get(rest.partition("_")[0])
        salt, expected = (record.salt, record.hash) if record else (self._secret.hex()[:32], "")
        if not hmac.compare_digest(hashed(text, bytes.fromhex(salt)), expected) or record is None:
            return None
        return self._owners[record.name]

    def _shopper(self, text: str) -> Caller | None:
        payload, _, mac = text.rpartition(".")
        if not hmac.compare_digest(self._mac(payload).encode(), mac.encode()):
            return None
        claimed = _pass_decoder.decode(urlsafe_b64decode(payload.removeprefix("v1.") + "=="))
        return Caller(f"shopper {claimed.user!r}", shopper=claimed.user) if claimed.expires > time.time() else None

    def _mac(self, payload: str) -> str:
        return _encoded(hmac.digest(self._secret, payload.encode(), sha256))

    def _hold(self, access: Access | None) -> None:
        self._keys = {record.name: record for record in access.key} if access else {}
        self._owners = {
            name: Caller(f"key {name}", frozenset().union(*(GRANTS[role] for role in record.roles)))
            for name, record in self._keys.items()
        }
        self._secret = bytes.fromhex(access.secret) if access else os.urandom(32)
        self.enabled = self.enabled or bool(self._keys)  # who removes all keys does not make everybody an admin

    def _look_again(self) -> None:
        """A key that was removed must not work until the next start."""
        now = time.monotonic()
        if self._path is None or now < self._next_look:
            return
        self._next_look = now + _LOOK_AGAIN
        if self._state() != self._seen:
            self._read(self._path)

    def _read(self, path: Path) -> None:
        """Read the file. If that fails, the last known keys stay, and it is tried again at the next look."""
        state = self._state()
        try:
            access = Access.read(path)
            problem = f"{path} is gone" if access is None and self.enabled else ""
        except AccessError as error:
            problem = str(error)
        if not problem:
            self._seen = state
            self._hold(access)
            logs.get().info("keys reloaded", keys=len(self._keys))
        elif problem != self._problem:  # else it was said already
            logs.get().error("keys not reloaded, so the last known ones stay valid", problem=problem)
        self._problem = problem

    def _state(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat() if self._path else None
        except OSError:
            return None
        return stat and (stat.st_mtime_ns, stat.st_ino)


class _Pass(msgspec.Struct):
    """The payload of a token."""

    user: Id
    expires: int


_pass_decoder = msgspec.json.Decoder(_Pass)
_EVERYBODY = Caller("", GRANTS[Role.ADMIN])


def _check_origin(headers: Mapping[bytes, bytes]) -> None:
    """Where nobody needs a key, a browser on this machine must not ask on behalf of a page from elsewhere."""
    host = headers.get(b"host", b"")
    if not _HERE.fullmatch(host):  # a page elsewhere may have given its name to us
        raise ApiError("wrong_host", "without keys, the service answers to localhost, 127.0.0.1 and [::1] only")
    origin = headers.get(b"origin")
    is_own = origin is None or origin.partition(b"://")[2] == host
    if not is_own or headers.get(b"sec-fetch-site", b"none") not in _OWN_SITE:
        raise ApiError("cross_site", "without keys, the service answers to its own page only, not to other sites'")


def _unauthenticated(message: str) -> ApiError:
    return ApiError("unauthenticated", message, {"www-authenticate": 'Bearer realm="unbasket"'})


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
