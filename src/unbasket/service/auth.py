"""Authentication and authorization: keys with roles, and short-lived tokens for one shopper each.

A token is `v2.<payload>.<mac>`; the payload has the shopper, the expiry, and the shopper's presence when it was issued:
a token ends when its shopper is forgotten.
"""

import hmac
import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id
from unbasket.errors import AccessError
from unbasket.service import logs
from unbasket.service.api_keys import GRANTS, KeyFile, Role, hashed
from unbasket.service.clock import Clock
from unbasket.service.errors import ApiError
from unbasket.store.presence import Presence

_VERSION = "v2."
_RELOAD_INTERVAL = 1.0  # seconds between two checks whether the key file has changed
_OWN_SITE = ("same-origin", "none")  # none: typed or bookmarked by the user of the browser
_LOOPBACK_HOST = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request: a key with the roles it grants, or one shopper. An anonymous caller has no name."""

    name: str
    grants: frozenset[Role] = frozenset()
    shopper: Id | None = None
    presence: Presence = Presence("", 0)  # of the shopper when the token was issued

    @property
    def may_read(self) -> bool:
        """Whether the caller may learn what is held: a key with the role, or a shopper, about their own data."""
        return self.shopper is not None or Role.READ in self.grants

    def check(self, roles: Collection[Role], own: str | None) -> None:
        """Raise unless the caller has one of the roles. `own` is the user in the path of a route for shoppers."""
        if self.shopper is None:
            if self.grants.isdisjoint(roles):
                raise ApiError("forbidden", f"this needs a key with the role {' or '.join(sorted(roles))}")
        elif own is None or str(parse_id(own)) != str(self.shopper):  # the same error for every user, known or not
            raise ApiError("forbidden", "this token is for the data of one shopper only")


class Authenticator:
    """Identification of callers. Without keys every caller is an admin, so only loopback is allowed."""

    def __init__(self, path: Path | None = None, key_file: KeyFile | None = None, clock: Clock | None = None) -> None:
        """Load the keys of a file, if it exists, which is read again when it changes; or use those given."""
        self.clock = clock or Clock(None)
        self.enabled = False  # whether a key is needed
        self._path = path
        self._seen = self._state()
        self._problem = ""  # why the changed file could not be read
        self._next_check = time.monotonic() + _RELOAD_INTERVAL
        self._use(KeyFile.read(path) if path else key_file)

    def reload(self) -> None:
        """Read the key file again."""
        self._problem = ""
        self._read()

    def identify(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller that sent these headers. Raises if the key or token is missing or invalid."""
        now = time.monotonic()
        if now >= self._next_check:  # so that a removed key stops working without a restart
            self._next_check = now + _RELOAD_INTERVAL
            if self._state() != self._seen:
                self._read()
        if not self.enabled:
            _check_origin(headers)
        authorization = headers.get("Authorization")
        if authorization is None:
            if self.enabled:
                raise invalid_key("this needs a key: Authorization: Bearer ...")
            return _LOCAL_ADMIN
        caller = self._known.get(authorization)
        if caller is None:
            scheme, _, text = authorization.partition(" ")
            text = text.strip()
            if scheme.lower() != "bearer" or not text.isascii():
                raise invalid_key()
            if text.startswith(_VERSION):
                return self._token_caller(text)
            caller = self._known[authorization] = self._key_caller(text)
        return caller

    def issue(self, user: Id, seconds: int, presence: Presence) -> tuple[str, int]:
        """Issue a token for a shopper who is present. Returns it with its expiry, a Unix time."""
        expires = int(time.time()) + seconds
        if expires <= self.clock.now():
            raise ApiError("wrong_clock")
        payload = _VERSION + _encoded(msgspec.json.encode(_Payload(user, expires, presence)))
        return f"{payload}.{self._mac(payload)}", expires

    def _key_caller(self, text: str) -> Caller:
        name = text.partition("_")[2].partition("_")[0]
        record = self._keys.get(name)
        salt, expected = (record.salt, record.hash) if record else (self._secret.hex()[:32], "")
        if not hmac.compare_digest(hashed(text, bytes.fromhex(salt)), expected) or record is None:
            raise invalid_key()
        return Caller(f"key {name}", frozenset().union(*(GRANTS[role] for role in record.roles)))

    def _token_caller(self, text: str) -> Caller:
        payload, _, mac = text.rpartition(".")
        if not hmac.compare_digest(self._mac(payload), mac):
            raise invalid_key()
        claimed = _payload_decoder.decode(urlsafe_b64decode(payload.removeprefix(_VERSION) + "=="))
        if claimed.expires <= self.clock.now():
            raise invalid_key()
        return Caller(f"shopper {claimed.user!r}", shopper=claimed.user, presence=claimed.presence)

    def _mac(self, payload: str) -> str:
        return _encoded(hmac.digest(self._secret, payload.encode(), sha256))

    def _use(self, key_file: KeyFile | None) -> None:
        self._keys = {record.name: record for record in key_file.key} if key_file else {}
        self._known: dict[str, Caller] = {}  # by valid headers: hashing a key takes as long as the rest
        self._secret = bytes.fromhex(key_file.secret) if key_file else os.urandom(32)
        self.enabled = self.enabled or bool(self._keys)  # removing all keys makes no caller an admin

    def _read(self) -> None:
        """Read the file, if there may be one. If that fails, the last known keys stay valid, until the next check."""
        path, state = self._path, self._state()
        if path is None:
            return
        try:
            key_file = KeyFile.read(path)
            problem = f"{path} is gone" if key_file is None and self.enabled else ""
        except AccessError as error:
            problem = str(error)
        if not problem:
            self._seen = state
            self._use(key_file)
            logs.get().info("keys reloaded", keys=len(self._keys))
        elif problem != self._problem:  # else it was logged already
            logs.get().error("keys not reloaded, so the last known ones stay valid", problem=problem)
        self._problem = problem

    def _state(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat() if self._path else None
        except OSError:
            return None
        return stat and (stat.st_mtime_ns, stat.st_ino)


class _Payload(msgspec.Struct):
    """The payload of a token."""

    user: Id
    expires: int
    presence: Presence


_payload_decoder = msgspec.json.Decoder(_Payload)
ANONYMOUS = Caller("")
_LOCAL_ADMIN = Caller("", GRANTS[Role.ADMIN])


def _check_origin(headers: Mapping[str, str]) -> None:
    """Raise if a page of another site makes a browser on this machine send a request without a key."""
    host = headers.get("Host", "")
    if not _LOOPBACK_HOST.fullmatch(host):  # DNS rebinding
        raise ApiError("wrong_host", "without keys, only requests to localhost, 127.0.0.1 and [::1] are accepted")
    origin = headers.get("Origin")
    is_own = origin is None or origin.partition("://")[2] == host
    if not is_own or headers.get("Sec-Fetch-Site", "none") not in _OWN_SITE:
        raise ApiError("cross_site", "without keys, only requests of the service's own page are accepted")


def invalid_key(message: str = "this key or token is not valid, or no longer is") -> ApiError:
    """Return the error for a key or token that is not valid, one for all reasons; or for none."""
    return ApiError("unauthenticated", message, {"www-authenticate": 'Bearer realm="unbasket"'})


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
