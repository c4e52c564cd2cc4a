"""A service in a process of its own, with its log in a file."""

import http.client
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.cli.running import PROGRAM

Running = TypeVar("Running", bound="Process")

TIMEOUT = 120  # seconds, on a busy machine


class Process:
    """A running service that logs to a file."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str], log: Path) -> None:
        self.log = log
        self._before = log.stat().st_size if log.exists() else 0
        with log.open("ab") as stream:
            self.process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment, cwd=log.parent)
        self.port = int(self.wait_for("listening")["address"].rpartition(":")[2])

    def lines(self) -> list[dict[str, Any]]:
        """Return the log lines of this process. Each must be JSON."""
        text = self.log.read_bytes()[self._before :].decode()
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_for(self, event: str) -> dict[str, Any]:
        """Wait for the log line of an event."""
        found: dict[str, Any] = until(
            lambda: next((line for line in self.lines() if line["event"] == event), None), self.process
        )
        return found

    def ready(self) -> Self:
        """Wait until the service is ready."""
        self.wait_for("ready")
        return self

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        """Return status and body of a response, over a new connection."""
        connection = self.connect()
        try:
            return ask(connection, method, path, body, **headers)
        finally:
            connection.close()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT)


class Service(Process):
    """A running `unbasket serve` on a free port."""

    def __init__(self, db: Path, *options: object) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UNBASKET_")}
        command = [*PROGRAM, "serve", "--db", str(db), "--port", "0", *map(str, options)]
        super().__init__(command, environment, db.with_name("service.log"))


@contextmanager
def running(db: Path, *options: object) -> Iterator[Service]:
    """Run a service until the block ends, and wait until it is ready."""
    with ending(Service(db, *options)) as service:
        yield service


@contextmanager
def ending(service: Running) -> Iterator[Running]:
    """Wait until a service is ready, and kill it when the block ends."""
    try:
        yield service.ready()
    finally:
        if service.process.poll() is None:
            service.process.kill()
        service.process.wait()


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, bytes]:
    """Return status and body of a response, over a connection that stays open."""
    content = None if body is None else json.dumps(body).encode()
    if content is not None:
        headers = {"Content-Type": "application/json"} | headers
    connection.request(method, path, content, headers)
    response = connection.getresponse()
    return response.status, response.read()


def until(condition: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> Any:
    """Poll until a condition is truthy, and return its value. Fails on a timeout, or if the process has ended."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        ended = process is not None and process.poll() is not None
        found = condition()
        if found:
            return found
        assert not ended, "the service has ended"
        time.sleep(0.005)
    raise AssertionError("it took too long")


def files_with_any(patterns: Path, folder: Path) -> list[str]:
    """Return the files that contain a line of `patterns`, found by grep; see `tests.cli.running.files_with`."""
    command = ["grep", "-rlaF", "-f", str(patterns), "."]
    return sorted(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout.split())


def failing(*arguments: object) -> str:
    """Run a command that must exit with code 2, and return its last line."""
    command = [*PROGRAM, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT, env=os.environ)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[-1]


def memory(service: Process) -> float:
    """Return the resident MiB of a service."""
    pages = int(Path(f"/proc/{service.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20
