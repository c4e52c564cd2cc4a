"""Logs: one JSON object per line.

They say what happened and how long it took, never about whom: no ids, no paths but their templates, no query strings,
and of an error only its type and where it came from, since its message may quote what was asked.
"""

import asyncio
import logging
import threading
import time
import traceback
from typing import Any, BinaryIO, cast

import msgspec
import structlog

_encode = msgspec.json.Encoder().encode


class Lines:
    """The stream of the log. A request must not fail because the log's disk is full or its reader is gone."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.broken = False

    def write(self, line: bytes) -> None:
        """Write a line; `broken` tells whether it could be."""
        try:
            self._stream.write(line)
            self._stream.flush()
            self.broken = False
        except OSError:
            self.broken = True

    def flush(self) -> None:
        """A line that is written is there."""


class Refusals:
    """Requests that were too many. A few of them are logged in each second: who floods the service must not flood its
    log too. The figures count all.
    """

    MOST = 10

    def __init__(self) -> None:
        self._second = self._count = 0

    def are_many(self) -> bool:
        """Count one more; tells whether there were enough of them in this second."""
        now = int(time.monotonic())
        if now != self._second:
            self._second, self._count = now, 0
        self._count += 1
        return self._count > self.MOST


def configure(stream: BinaryIO) -> Lines:
    """Send everything that this process logs there, in this form."""
    lines = Lines(stream)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            _render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.BytesLoggerFactory(cast("BinaryIO", lines)),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_Forwarding()], level=logging.WARNING, force=True)
    threading.excepthook = lambda failed: failure("a thread failed", failed.exc_value)
    return lines


def get() -> Any:
    """The logger of the service."""
    return structlog.get_logger()


def answered(method: str, call: str, status: int, seconds: float, request: str) -> None:
    """Log an answer. `call` is a route template, `request` the id that the answer carries too."""
    get().info("answer", method=method, call=call, status=status, ms=round(seconds * 1000, 3), request=request)


def failure(event: str, error: BaseException | None, **facts: object) -> None:
    """Log an error that nobody expected: its type and where it came from."""
    get().error(event, error=type(error).__name__, where=_where(error), **facts)


def on_loop_failure(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """The event loop's handler of what nobody caught."""
    failure("a task failed", context.get("exception"))


class _Forwarding(logging.Handler):
    """Takes over what libraries log: the text as it stands in their code, without what they put into it."""

    def emit(self, record: logging.LogRecord) -> None:
        text, _, _ = str(record.msg).partition("\n")
        failure(text, record.exc_info[1] if record.exc_info else None, logger=record.name)


def _where(error: BaseException | None) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__) if error is not None else []
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _render(_: Any, __: str, event: structlog.typing.EventDict) -> bytes:
    return _encode(event)
