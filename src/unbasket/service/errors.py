"""Errors over HTTP: one JSON schema, and a status and a code for each."""

from typing import Literal, NamedTuple

from unbasket import errors

Occasion = Literal["any", "address", "key", "path", "body", "thread", "write", "named"]


class Code(NamedTuple):
    """An error's status, its meaning, and its occasion: any request, an address without a route, or a route that needs
    a key, has path parameters, has a body, runs in a thread, writes, or names the code in the table of routes.
    """

    status: int
    occasion: Occasion
    meaning: str


CODES = {
    "malformed_request": Code(
        400, "any", "it is not HTTP/1.1, its head is too large, a header is repeated, or the path has too many %"
    ),
    "malformed_json": Code(400, "body", "the body is not JSON in UTF-8"),
    "invalid_body": Code(400, "body", "the body is JSON of another shape; the message says where"),
    "invalid_query": Code(400, "any", "a query parameter is unknown, repeated or invalid"),
    "invalid_path": Code(400, "path", "a part of the path is not in UTF-8, or an id in it is too long"),
    "invalid_rules": Code(400, "named", "the retention rules are not TOML, or not valid"),
    "invalid_request": Code(400, "thread", "another part of the request is invalid; the message says which"),
    "unauthenticated": Code(401, "key", "the key or token is missing, invalid or expired"),
    "forbidden": Code(403, "key", "the key lacks the role, or the token is for another shopper"),
    "wrong_host": Code(403, "key", "without keys, the Host must be a loopback name"),
    "cross_site": Code(403, "key", "without keys, requests of other sites' pages are rejected"),
    "not_found": Code(404, "address", "there is no such address"),
    "unknown_user": Code(404, "named", "nothing is held about this user"),
    "unknown_receipt": Code(404, "named", "there is no receipt with this number"),
    "method_not_allowed": Code(405, "address", "the address has other methods: see the header Allow"),
    "params_changing": Code(409, "named", "the parameters are being changed already; try again when that is done"),
    "slow_request": Code(408, "body", "the body did not arrive in time"),
    "too_large": Code(413, "body", "the body is larger, or has more elements, than the service accepts"),
    "unsupported_media_type": Code(415, "body", "the body is not application/json, or for events application/x-ndjson"),
    "too_many_requests": Code(429, "any", "the key or the address exceeds its rate: see the header Retry-After"),
    "internal": Code(500, "any", "an error in the service, which its log describes"),
    "uncertain": Code(
        500, "write", "the disk failed, or writing was interrupted: it may have happened, or not; look before retrying"
    ),
    "not_ready": Code(503, "thread", "the database is being loaded or closed"),
    "store_failed": Code(503, "thread", "the database could not be read or written; nothing was changed"),
    "erasure_blocked": Code(
        503, "write", "it is forgotten, but a reader keeps its bytes in a file; the next forget removes them"
    ),
    "wrong_clock": Code(503, "named", "the service's clock went back, and a new token would have expired; see its log"),
    "timed_out": Code(504, "thread", "it takes too long; it may still happen, and is safe to repeat"),
    "disk_full": Code(507, "write", "the disk is full; nothing was changed"),
}
"""All errors by code, in the order of the documentation."""

_CODE_BY_ERROR = (
    (errors.BusyError, "params_changing"),
    (errors.NotReadyError, "not_ready"),
    (errors.ClosedError, "not_ready"),
    (errors.UnknownUserError, "unknown_user"),
    (errors.RetentionError, "invalid_rules"),
    (errors.ErasureBlockedError, "erasure_blocked"),
    (errors.UncertainError, "uncertain"),
    (errors.DiskFullError, "disk_full"),
    (errors.StoreError, "store_failed"),
)


class ApiError(errors.UnbasketError):
    """An error response, by default with the meaning of its code. A client that may try again later is told when."""

    def __init__(self, code: str, message: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(message or CODES[code].meaning)
        self.code = code
        self.status = CODES[code].status
        self.headers = ({"retry-after": "1"} if self.status in (429, 503) else {}) | (headers or {})


class ClientGoneError(Exception):
    """The client has disconnected."""


def to_api_error(error: errors.UnbasketError) -> ApiError:
    """Convert an error of the engine. Messages of the store name files, so they are not passed on."""
    if isinstance(error, ApiError):
        return error
    code = next((code for kind, code in _CODE_BY_ERROR if isinstance(error, kind)), "invalid_request")
    return ApiError(code, str(error) if CODES[code].status == 400 else "")
