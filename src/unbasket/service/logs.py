"""Logs: one JSON object per line, without personal data.

Lines have path templates but no ids, paths or query strings. Of an unexpected error they have its type and its
traceback but not its message, which may quote the request.
"""

import logging
import threading
import traceback
from typing import Any, BinaryIO

import msgspec
import structlog


class Lines:
    """The stream of the log, which ignores errors: a full disk or a closed pipe must not fail a request."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.broken = False

    def write(self, line: bytes) -> None:
        """Write a line of any level, and set `broken` if that fails."""
        try:
            self._stream.write(line)
            self._stream.flush()
            self.broken = False
        except OSError:
            self.broken = True

    info = warning = error = write


def configure(stream: BinaryIO) -> Lines:
    """Write all logs of this process to a stream."""
    lines = Lines(stream)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            lambda _, __, event: msgspec.json.encode(event) + b"\n",
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=lambda: lines,
    )
    logging.basicConfig(handlers=[_Forwarding()], level=logging.WARNING, force=True)
    threading.excepthook = lambda failed: failure("a thread failed", failed.exc_value)
    return lines


def get() -> Any:
    """Return the logger of the service."""
    return structlog.get_logger()


def failure(event: str, error: BaseException | None, **facts: object) -> None:
    """Log an unexpected error: its type and its traceback."""
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    where = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    get().error(event, error=type(error).__name__, where=where, **facts)


class _Forwarding(logging.Handler):
    """A handler for the logs of libraries. It drops the arguments of messages, which may be personal data."""

    def emit(self, record: logging.LogRecord) -> None:
        text, _, _ = str(record.msg).partition("\n")
        failure(text, record.exc_info[1] if record.exc_info else None, logger=record.name)
