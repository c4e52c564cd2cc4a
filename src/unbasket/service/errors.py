"""Errors over HTTP: one shape, and a status and a code for everything that can go wrong."""

import msgspec

from unbasket.errors import (
    ClosedError,
    DiskFullError,
    ErasureBlockedError,
    StoreError,
    UnbasketError,
    UncertainError,
    UnknownUserError,
)
from unbasket.service.shop import NotReadyError
from unbasket.store.retention import RetentionError

CODES = {
    "malformed_request": (400, "it is not HTTP/1.1, or a header comes twice that may not"),
    "malformed_json": (400, "the body is not JSON in UTF-8"),
    "invalid_body": (400, "the body is JSON of another shape; the message says where"),
    "invalid_query": (400, "a query parameter is unknown, repeated, or has no such value"),
    "invalid_path": (400, "a part of the path is not in UTF-8"),
    "invalid_rules": (400, "the retention rules are not TOML, or can't be meant"),
    "invalid_request": (400, "something else can't be answered; the message says what"),
    "unauthenticated": (401, "there is no key or token, or it is not valid, or no longer"),
    "forbidden": (403, "the key lacks the role, or the token is for another shopper"),
    "wrong_host": (403, "without keys, the service answers to names of this machine only"),
    "cross_site": (403, "without keys, the service does not answer to pages of other sites"),
    "not_found": (404, "there is no such address"),
    "unknown_user": (404, "nothing is held about this user"),
    "unknown_receipt": (404, "there is no receipt of this number"),
    "method_not_allowed": (405, "the address has other methods: see the header Allow"),
    "slow_request": (408, "the headers or the body did not arrive in time"),
    "too_large": (413, "the body is larger, or has more entries, than the service accepts"),
    "address_too_long": (414, "the address is longer than the service accepts"),
    "unsupported_media_type": (415, "the body must be application/json, or for events application/x-ndjson"),
    "too_many_requests": (429, "the key or the address asks too often: see the header Retry-After"),
    "headers_too_large": (431, "the headers are longer, or more, than the service accepts"),
    "internal": (500, "an error in the service, which its log describes"),
    "uncertain": (
        500,
        "the disk failed, or writing was interrupted: it may have happened, or not; look before retrying",
    ),
    "too_many_connections": (503, "all connections are in use"),
    "not_ready": (503, "the shop is being loaded, or closed"),
    "store_failed": (503, "the database could not be read or written; nothing was changed"),
    "erasure_blocked": (503, "it is forgotten, but a reader keeps its bytes in a file; the next forget removes them"),
    "timed_out": (504, "it takes longer than the service waits; it may still happen, and may be asked for again"),
    "disk_full": (507, "there is no room on the disk; nothing was changed"),
}
"""Every code, its status, and what it means."""

_CODES_OF = (
    (NotReadyError, "not_ready"),
    (ClosedError, "not_ready"),
    (UnknownUserError, "unknown_user"),
    (RetentionError, "invalid_rules"),
    (ErasureBlockedError, "erasure_blocked"),
    (UncertainError, "uncertain"),
    (DiskFullError, "disk_full"),
    (StoreError, "store_failed"),
)


class Fault(msgspec.Struct, frozen=True):
    """What is wrong: a code for programs, a message for people."""

    code: str
    message: str


class ErrorAnswer(msgspec.Struct, frozen=True):
    """The body of every answer that is an error."""

    error: Fault


class ApiError(UnbasketError):
    """A request that gets an error for an answer."""

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = CODES[code][0]
        self.headers = headers or {}

    def answer(self) -> ErrorAnswer:
        """The body."""
        return ErrorAnswer(Fault(self.code, str(self)))


def translated(error: UnbasketError) -> ApiError:
    """An error of the engine as one over HTTP. The store's messages name files, so they are not passed on."""
    if isinstance(error, ApiError):
        return error
    code = next((code for kind, code in _CODES_OF if isinstance(error, kind)), "invalid_request")
    status, meaning = CODES[code]
    if status == 400:
        return ApiError(code, str(error))
    return ApiError(code, meaning, {"retry-after": "1"} if status == 503 else None)
