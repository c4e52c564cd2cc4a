"""Errors of the client: those of the service, by code, as the exceptions that the engine raises."""

from unbasket.errors import (
    AccessError,
    BusyError,
    DiskFullError,
    ErasureBlockedError,
    InvalidRequestError,
    NotReadyError,
    RetentionError,
    StoreError,
    UnbasketError,
    UncertainError,
    UnknownUserError,
)


class ServiceError(UnbasketError):
    """An error response of the service.

    Many are also the exception that the engine raises: `except ub.UnknownUserError` works with both. `code` is for
    programs, the message for people, and `request_id` finds the request in the service's log. `retry_after` has the
    seconds after which the service allows another try, if it said so.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after


class UnavailableError(ServiceError, NotReadyError):
    """A service that can't be reached, is loading or closing, or refuses more requests for now."""


class _InvalidRequestError(ServiceError, InvalidRequestError):
    pass


class _AccessError(ServiceError, AccessError):
    pass


class _UnknownUserError(ServiceError, UnknownUserError):
    pass


class _RetentionError(ServiceError, RetentionError):
    pass


class _BusyError(ServiceError, BusyError):
    pass


class _StoreError(ServiceError, StoreError):
    pass


class _UncertainError(ServiceError, UncertainError):
    pass


class _ErasureBlockedError(ServiceError, ErasureBlockedError):
    pass


class _DiskFullError(ServiceError, DiskFullError):
    pass


_BY_CODE: dict[str, type[ServiceError]] = {
    "unknown_user": _UnknownUserError,
    "invalid_rules": _RetentionError,
    "params_changing": _BusyError,
    "uncertain": _UncertainError,
    "store_failed": _StoreError,
    "erasure_blocked": _ErasureBlockedError,
    "disk_full": _DiskFullError,
}

_BY_STATUS: dict[int, type[ServiceError]] = {
    400: _InvalidRequestError,
    401: _AccessError,
    403: _AccessError,
    413: _InvalidRequestError,
    429: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def error_class(code: str, status: int) -> type[ServiceError]:
    """Return the class of an error: by its code, or else by its status."""
    return _BY_CODE.get(code) or _BY_STATUS.get(status, ServiceError)
