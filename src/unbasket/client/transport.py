"""The transport of requests over httpx: keys, TLS, and repeating a request that is safe to repeat."""

import random
import ssl
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from os import PathLike
from typing import Any

import httpx
import msgspec

from unbasket.client.errors import ServiceError, UnavailableError, error_class

LONGEST_WAIT = 30.0
"""Seconds. If the service asks for a longer wait, its error is raised at once."""

_FIRST_WAIT = 0.1  # seconds, then twice as long each time
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_PASSING = (429, 502, 503, 504)  # of these, a request may succeed later
_UNCHANGED = ("too_many_requests", "not_ready", "store_failed", "wrong_clock")  # and of these, nothing has changed

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Transport:
    """A pool of connections to one service, safe to share among threads."""

    def __init__(
        self,
        url: str,
        key: str | None,
        *,
        ca: str | PathLike[str] | None,
        certificate: tuple[str | PathLike[str], str | PathLike[str]] | None,
        timeout: float,
        retries: int,
    ) -> None:
        self._retries = retries
        self._http = httpx.Client(
            base_url=url,
            headers={"accept": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {}),
            timeout=timeout,
            verify=_tls(ca, certificate),
        )

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        is_repeatable: bool = True,
        is_text: bool = False,
    ) -> Any:
        """Return the JSON value of the response, or its text. A body of bytes is newline-delimited JSON.

        A request that is not repeatable is repeated only if it was not sent, or if the service says that it has changed
        nothing.
        """
        request = self._http.build_request(method, path, params=query, **_content(body))
        attempt = 0
        error: ServiceError
        while True:
            try:
                response = self._http.send(request)
            except httpx.TransportError as problem:
                error, may_repeat = _unreachable(request, problem), is_repeatable or isinstance(problem, _UNSENT)
            else:
                if response.is_success:
                    return response.text if is_text else _value(response)
                error = _error(response)
                may_repeat = response.status_code in _PASSING and (is_repeatable or error.code in _UNCHANGED)
            wait = _FIRST_WAIT * 2**attempt * random.uniform(0.5, 1) if error.retry_after is None else error.retry_after
            if not may_repeat or attempt >= self._retries or wait > LONGEST_WAIT:
                raise error
            time.sleep(wait)
            attempt += 1


def _tls(
    ca: str | PathLike[str] | None, certificate: tuple[str | PathLike[str], str | PathLike[str]] | None
) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca)
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context


def _content(body: Any) -> dict[str, Any]:
    if body is None:
        return {}
    if isinstance(body, bytes):
        return {"content": body, "headers": {"content-type": "application/x-ndjson"}}
    return {"content": _encode(body), "headers": {"content-type": "application/json"}}


def _value(response: httpx.Response) -> Any:
    try:
        return _decode(response.content)
    except msgspec.DecodeError as error:
        raise _not_json(response) from error


def _unreachable(request: httpx.Request, problem: httpx.TransportError) -> UnavailableError:
    address = f"{request.url.scheme}://{request.url.netloc.decode()}"
    error = UnavailableError("unreachable", f"{address} does not answer: {problem or type(problem).__name__}")
    error.__cause__ = problem
    return error


def _error(response: httpx.Response) -> ServiceError:
    """Return the error of a response: the service's own, or that of a proxy before it."""
    try:
        detail = _decode(response.content)["error"]
        code, message = str(detail["code"]), str(detail["message"])
    except (msgspec.DecodeError, LookupError, TypeError):
        return _not_json(response)
    return error_class(code, response.status_code)(code, message, **_headers(response))


def _not_json(response: httpx.Response) -> ServiceError:
    status = response.status_code
    message = f"{response.request.url.host} answered {status} and not as the service does: is the address right?"
    return error_class("not_json", status)("not_json", message, **_headers(response))


def _headers(response: httpx.Response) -> dict[str, Any]:
    return {
        "status": response.status_code,
        "request_id": response.headers.get("x-request-id"),
        "retry_after": _seconds(response.headers.get("retry-after")),
    }


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After, which has a number of them or a date."""
    if retry_after is None:
        return None
    try:
        if retry_after.isdecimal():
            return float(retry_after)
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
