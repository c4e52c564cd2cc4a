"""Logs: one JSON object per line, without personal data.

Lines have path templates but no ids, paths or query strings. Of an unexpected error they have its type and its
traceback but not its message, which may quote the request.
"""

import asyncio
import logging
import threading
import time
import traceback
from typing import Any, BinaryIO, cast

import msgspec
import structlog


class Lines:
    """The stream of the log, which ignores errors: a full disk or a closed pipe must not fail a request."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.broken = False

    def write(self, line: bytes) -> None:
        """Write a line, and set `broken` if that fails."""
        try:
            self._stream.write(line)
            self._stream.flush()
            self.broken = False
        except OSError:
            self.broken = True

    def flush(self) -> None:
        """Do nothing: `write` flushes."""


class Refusals:
    """A limit on log lines for responses 429: a flood of requests must not flood the log. The metrics count all."""

    MOST = 10

    def __init__(self) -> None:
        self._second = self._count = 0

    def exceed(self) -> bool:
        """Count a response. Returns whether this second has enough log lines."""
        now = int(time.monotonic())
        if now != self._second:
            self._second, self._count = now, 0
        self._count += 1
        return self._count > self.MOST


def configure(stream: BinaryIO) -> Lines:
    """Write all logs of this process to a stream."""
    lines = Lines(stream)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            lambda _, __, event: msgspec.json.encode(event),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(cast("BinaryIO", lines)),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_Forwarding()], level=logging.WARNING, force=True)
    threading.excepthook = lambda failed: failure("a thread failed", failed.exc_value)
    return lines


def get() -> Any:
    """Return the logger of the service."""
    return structlog.get_logger()


def responded(method: str, route: str, status: int, seconds: float, request: str, trace: str | None) -> None:
    """Log a response: a path template, the id in the response's headers, and the caller's trace if there is one."""
    facts = {} if trace is None else {"trace": trace}
    ms = round(seconds * 1000, 3)
    get().info("response", method=method, route=route, status=status, ms=ms, request=request, **facts)


def failure(event: str, error: BaseException | None, **facts: object) -> None:
    """Log an unexpected error: its type and its traceback."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    get().error(event, error=type(error).__name__, where=where, **facts)


def on_loop_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an uncaught error of the event loop."""
    failure("a task failed", context.get("exception"))


class _Forwarding(logging.Handler):
    """A handler for the logs of libraries. It drops the arguments of messages, which may be personal data."""

    def emit(self, record: logging.LogRecord) -> None:
        text, _, _ = str(record.msg).partition("\n")
        failure(text, record.exc_info[1] if record.exc_info else None, logger=record.name)
