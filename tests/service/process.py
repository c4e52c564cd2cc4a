"""The service as a process of its own, with its log in a file."""

import http.client
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.cli.running import PROGRAM

Running = TypeVar("Running", bound="Process")

PATIENCE = 120  # seconds, on a busy machine


class Process:
    """A running service, whose log is a file."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self._before = log.stat().st_size if log.exists() else 0
        with log.open("ab") as stream:
            self.process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment, cwd=log.parent)
        self.port = int(self.wait_for("listening")["address"].rpartition(":")[2])

    def lines(self) -> list[dict[str, Any]]:
        """What this process has logged. Each line must be JSON."""
        text = self.log.read_bytes()[self._before :].decode()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_for(self, event: str) -> dict[str, Any]:
        """The line that says that something has happened."""
        found: dict[str, Any] = until(
            lambda: next((line for line in self.lines() if line["event"] == event), None), self.process
        )
        return found

    def ready(self) -> Self:
        """The service, when it answers questions."""
        self.wait_for("ready")
        return self

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        """Status and body of an answer, over a connection of its own."""
        connection = self.connect()
        try:
            return ask(connection, method, path, body, **headers)
        finally:
            connection.close()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The exit code after a signal."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


class Service(Process):
    """A running `unbasket serve` on a free port."""

    def __init__(self, db: Path, *options: object) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UNBASKET_")}
        command = [*PROGRAM, "serve", "--db", str(db), "--port", "0", *map(str, options)]
        super().__init__(command, environment, db.with_name("service.log"))


@contextmanager
def running(db: Path, *options: object) -> Iterator[Service]:
    """A service that answers questions, and is gone afterwards."""
    with ending(Service(db, *options)) as service:
        yield service


@contextmanager
def ending(service: Running) -> Iterator[Running]:
    """A service when it answers questions, which is gone afterwards."""
    try:
        yield service.ready()
    finally:
        if service.process.poll() is None:
            service.process.kill()
        service.process.wait()


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, bytes]:
    """Status and body of an answer over a connection that stays open."""
    content = None if body is None else json.dumps(body).encode()
    if content is not None:
        headers = {"Content-Type": "application/json"} | headers
    connection.request(method, path, content, headers)
    response = connection.getresponse()
    return response.status, response.read()


def until(condition: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> Any:
    """What a condition says when it says something; an error if it takes too long, or the process has ended."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended = process is not None and process.poll() is not None
        found = condition()
        if found:
            return found
        assert not ended, "the service has ended"
        time.sleep(0.005)
    raise AssertionError("it took too long")


def files_with_any(patterns: Path, folder: Path) -> list[str]:
    """The files that contain a line of `patterns`, found by another process; see `tests.cli.running.files_with`."""
    command = ["grep", "-rlaF", "-f", str(patterns), "."]
    return sorted(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.split())
