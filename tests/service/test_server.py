"""The server process: start, signals, reload, end."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import PROGRAM, run
from tests.limits import FEW_FILES
from tests.service.process import Process, Service, ask, ending, failing, running, until

import unbasket as ub
from unbasket.datasets import generate
from unbasket.service.api_keys import KeyFile

BASKET_PATH = "/v1/users/{}/baskets/{}"


_JSON = {"Content-Type": "application/json"}

WITHOUT_THREADS = """
import sys, threading
from contextlib import nullcontext, suppress
from pathlib import Path
from unbasket.service.server import free_address, run
from unbasket.service.settings import Settings

def refuse(thread):
    raise RuntimeError("can't start new thread")

def ready(*_):
    threading.Thread.start = refuse

bar = lambda text: nullcontext(lambda done, total: None)
with suppress(RuntimeError):  # asyncio itself starts a thread at the end of its loop
    run(Settings(db=Path(sys.argv[1])), free_address("127.0.0.1", 0), bar=bar, ready=ready, log=sys.stderr.buffer)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a database that takes a moment to load."""
    path = tmp_path_factory.mktemp("large") / "shop.db"
    with ub.open(path) as rec:
        rec.fit(generate(1500).history)
    return path


def test_the_service_is_alive_and_not_ready_while_it_loads(large: Path) -> None:
    service = Service(large)
    try:
        states = list(_states(service))
    finally:
        assert service.stop() == 0
    assert [status for status, _ in states[:-1]] == [503] * (len(states) - 1)
    assert states[-1][0] == 200
    assert states[-1][1]["ready"]
    assert any(0 < state["progress"][0] <= state["progress"][1] for _, state in states[:-1])
    lines = service.lines()
    loading = [line for line in lines if line["event"] == "loading"]
    assert [line["event"] for line in lines[:2]] == [
        "no keys: every program on this machine is an admin",
        "listening",
    ]
    assert lines[0]["level"] == "warning"
    assert "opening" in {line["stage"] for line in loading}
    assert all(line["doing"].startswith(line["stage"]) for line in loading)


def _states(service: Service) -> Iterator[tuple[int, Any]]:
    """Yield the responses of /readyz until it is 200; meanwhile /healthz is 200 and other requests are 503."""
    while True:
        status, body = service.ask("GET", "/readyz")
        yield status, json.loads(body)
        if status == 200:
            return
        assert service.ask("GET", "/healthz")[0] == 200
        refused, reason = service.ask("GET", "/v1/popular")
        time.sleep(0.02)
        assert refused == 200 or (refused, json.loads(reason)["error"]["code"]) == (503, "not_ready")


def test_a_signal_while_the_service_loads(large: Path) -> None:
    service = Service(large)
    assert service.stop(signal.SIGINT) == 0
    with ub.open(large) as rec:  # the lock is free
        assert len(rec) == 1500


def test_only_a_service_with_keys_listens_to_other_machines(db: Path) -> None:
    refused = failing("serve", "--db", db, "--host", "0.0.0.0", "--port", "0")
    assert "without keys" in refused
    assert "unbasket keys add" in refused
    key = run("keys", "add", "till", "--role", "write", "--db", db).strip()
    with running(db, "--host", "0.0.0.0") as service:
        path = BASKET_PATH.format("ann", 1)
        assert service.ask("PUT", path, {"items": ["tea"]})[0] == 401
        assert service.ask("PUT", path, {"items": ["tea"]}, Authorization=f"Bearer {key}")[0] == 200
        assert service.ask("GET", "/metrics", Authorization=f"Bearer {key}")[0] == 403
        run("keys", "remove", "till", "--db", db)  # the last key: then no caller is admitted, rather than every one
        until(lambda: service.ask("GET", "/v1/popular", Authorization=f"Bearer {key}")[0] == 401)
        assert service.ask("GET", "/v1/popular")[0] == 401
        assert service.stop() == 0
    assert key not in service.log.read_text()


def test_a_named_key_file_must_have_keys(db: Path) -> None:
    """A mistyped name would make every caller an admin."""
    named = db.with_name("typo.toml")
    for _ in range(2):
        refused = failing("serve", "--db", db, "--port", "0", "--access", named)
        assert f"there are no keys in {named}. Make one with `unbasket keys add" in refused
        KeyFile.new().write(named)  # a file without keys is rejected too
    assert [path.name for path in db.parent.iterdir()] == [named.name]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    file.write_bytes(b"no database " * 100)
    assert "shop.db" in failing("serve", "--db", file, "--port", "0")
    assert file.read_bytes() == b"no database " * 100


def test_consuming_needs_a_topic(db: Path) -> None:
    assert "--consume needs --brokers and --topic" in failing("serve", "--db", db, "--port", "0", "--consume")
    assert "no effect without --consume" in failing("serve", "--db", db, "--port", "0", "--topic", "events")
    options = ("--consume", "--brokers", "127.0.0.1:1", "--topic", "a b")
    assert "a topic has 1 to 249 letters" in failing("serve", "--db", db, "--port", "0", *options)
    assert not db.exists()


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = failing("serve", "--db", tmp_path / "shop.db", "--port", port)
    assert f"port {port} of 127.0.0.1 is taken. Choose another with --port" in refused
    assert list(tmp_path.iterdir()) == []  # nothing was created


def test_too_few_files(db: Path) -> None:
    code = f"from unbasket.cli import app\n{FEW_FILES}\napp()"
    line = [PROGRAM[0], "-c", code, "20", "serve", "--db", str(db), "--port", "0"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("Error: this process may open 20 files and sockets at a time")


def test_an_address_of_another_machine(db: Path) -> None:
    assert "with --host" in failing("serve", "--db", db, "--host", "192.0.2.1", "--port", "0")
    assert "with --host" in failing("serve", "--db", db, "--host", "no.such.invalid")


def test_sighup_reloads_settings_and_keys(db: Path) -> None:
    config = db.with_name("settings.toml")
    config.write_text("rate = 1000\n")
    with running(db, "--config", config, "--timeout", 20) as service:
        assert service.ask("POST", "/v1/events", [])[0] == 200
        config.write_text("max_body = 1024\nrate = 1000\ntimeout = 10\nthreads = 4\n")
        key = run("keys", "add", "till", "--role", "write", "--db", db).strip()
        service.process.send_signal(signal.SIGHUP)
        logged = service.wait_for("settings reloaded")
        assert logged["changed"] == {"max_body": 1024}  # a flag overrides the file, also after a reload
        assert logged["need_a_restart"] == ["threads"]
        assert [line["keys"] for line in service.lines() if line["event"] == "keys reloaded"] == [1]
        assert service.ask("POST", "/v1/events", [])[0] == 401
        large = [{"event": "forget", "user": "x" * 100}] * 20
        assert service.ask("POST", "/v1/events", large, Authorization=f"Bearer {key}")[0] == 413
        assert service.stop() == 0


def test_a_new_rate_applies_at_once(db: Path) -> None:
    config = db.with_name("settings.toml")
    config.write_text("")
    with running(db, "--config", config) as service:
        assert {service.ask("GET", "/v1/popular")[0] for _ in range(5)} == {200}
        config.write_text("rate = 0.001")
        service.process.send_signal(signal.SIGHUP)
        service.wait_for("settings reloaded")
        assert [service.ask("GET", "/v1/popular")[0] for _ in range(2)] == [200, 429]


def test_sighup_with_invalid_settings_changes_nothing(db: Path) -> None:
    config = db.with_name("settings.toml")
    config.write_text("")
    with running(db, "--config", config) as service:
        config.write_text("max_body = 1024\nprot = 80\n")
        service.process.send_signal(signal.SIGHUP)
        assert "unknown setting 'prot'" in service.wait_for("settings not reloaded")["problem"]
        assert service.ask("POST", "/v1/events", [{"event": "forget", "user": "x" * 100}] * 20)[0] == 200
        assert service.stop() == 0


def test_sighup_while_the_service_loads(large: Path) -> None:
    service = Service(large)
    service.process.send_signal(signal.SIGHUP)
    service.wait_for("settings reloaded")
    service.ready()
    assert service.stop() == 0


def test_an_unreadable_key_file_keeps_the_last_known_keys(db: Path) -> None:
    key = run("keys", "add", "till", "--role", "read", "--db", db).strip()
    file = db.with_name("shop.db-access.toml")
    with running(db) as service:
        assert service.ask("GET", "/v1/popular", Authorization=f"Bearer {key}")[0] == 200
        file.write_text("key = 1")
        service.process.send_signal(signal.SIGHUP)
        until(lambda: "holds no keys" in _problem(service))
        assert service.ask("GET", "/v1/popular", Authorization=f"Bearer {key}")[0] == 200
        file.unlink()
        service.process.send_signal(signal.SIGHUP)
        until(lambda: "is gone" in _problem(service))
        assert service.ask("GET", "/v1/popular", Authorization=f"Bearer {key}")[0] == 200
        assert service.ask("GET", "/v1/popular")[0] == 401
        assert service.stop() == 0
    assert service.lines()[0]["event"] == "listening"  # without the warning about missing keys


def _problem(service: Service) -> str:
    """Return the last logged problem with the key file."""
    event = "keys not reloaded, so the last known ones stay valid"
    return next((str(line["problem"]) for line in reversed(service.lines()) if line["event"] == event), "")


def test_a_closed_terminal_stops_the_service(db: Path) -> None:
    """The log cannot be written, so SIGHUP means the end."""
    reading, writing = os.openpty()
    with _process(db, writing) as process:
        os.close(writing)
        text = b""
        while b'"ready"' not in text:
            text += os.read(reading, 1000)
        os.close(reading)
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    assert not db.with_name("shop.db-wal").exists()


def test_without_further_threads_it_responds_and_ends(db: Path) -> None:
    script = db.with_name("serve.py")
    script.write_text(WITHOUT_THREADS)
    with ending(Process([sys.executable, script, db], os.environ, db.with_name("service.log"))) as service:
        assert service.ask("PUT", BASKET_PATH.format("ann", 1), {"items": ["tea"]})[0] == 200
        assert service.ask("GET", "/v1/users/ann/recommendations")[0] == 200
        assert service.ask("GET", "/v1/users/ann")[0] == 200
        assert service.stop() == 0
        assert service.lines()[-1]["event"] == "closed"


def test_a_closed_log_fails_no_request(db: Path) -> None:
    with _process(db, subprocess.PIPE) as process:
        connection = _connected(process)
        assert process.stderr is not None
        process.stderr.close()
        assert ask(connection, "PUT", BASKET_PATH.format("ann", 1), {"items": ["tea"]})[0] == 200
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_progress_is_finished(db: Path, number: signal.Signals) -> None:
    body = json.dumps({"items": ["tea", "milk"]}).encode()
    with running(db) as service:
        connection = service.connect()
        connection.putrequest("PUT", BASKET_PATH.format("ann", 1))
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body[:5])
        until(lambda: _is_running(service))
        service.process.send_signal(number)
        service.wait_for("stopping")
        until(lambda: _refuses(service.port))
        assert service.process.poll() is None
        connection.send(body[5:])
        assert connection.getresponse().status == 200
        connection.close()
        assert service.process.wait(30) == 0
    assert sorted(path.name for path in db.parent.iterdir()) == [
        "service.log",
        "shop.db",
        "shop.db-clock",
        "shop.db-keys",
        "shop.db-lock",
    ]
    with ub.open(db, read_only=True) as rec:
        assert [(basket.basket, basket.items) for basket in rec.history("ann")] == [(1, ("milk", "tea"))]


def _is_running(service: Service) -> bool:
    """Return whether the service has received earlier requests: it responds to a later one."""
    return service.ask("GET", "/healthz")[0] == 200


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


def test_a_stalled_request_does_not_delay_the_end_forever(db: Path) -> None:
    with running(db, "--grace", "1") as service:
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        connection.putrequest("PUT", BASKET_PATH.format("ann", 1))
        connection.putheader("Content-Length", "5")
        connection.endheaders(b"[")
        until(lambda: _is_running(service))
        assert service.stop() == 0
        connection.close()
    with ub.open(db) as rec:
        assert len(rec) == 0


def test_acknowledged_writes_survive_the_end(db: Path) -> None:
    """Writers are interrupted, but a basket with a response 200 is stored."""
    learned: list[int] = []

    def write(first: int) -> None:
        connection = service.connect()
        for basket in range(first, first + 100_000):
            try:
                connection.request("PUT", BASKET_PATH.format("ann", basket), json.dumps({"items": ["tea"]}), _JSON)
                response = connection.getresponse()
                response.read()
            except (http.client.HTTPException, OSError):
                break
            if response.status == 200:
                learned.append(basket)
        connection.close()

    with running(db) as service:
        threads = [threading.Thread(target=write, args=(number * 1_000_000,)) for number in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(learned) > 100)
        assert service.stop() == 0
        for thread in threads:
            thread.join()
    with ub.open(db, read_only=True) as rec:
        assert {basket.basket for basket in rec.history("ann")} >= set(learned)


def test_a_signal_while_the_log_blocks(db: Path) -> None:
    """The pipe of the log is full, so the service is writing a line when the signal arrives."""
    with _process(db, subprocess.PIPE) as process:
        connection = _connected(process)
        with pytest.raises(TimeoutError):
            _fill_the_log(connection)
        connection.close()
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b'"stopping"' in rest


@contextmanager
def _process(db: Path, log: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a service with its log in a file descriptor, and kill it when the block ends."""
    with subprocess.Popen([*PROGRAM, "serve", "--db", db, "--port", "0"], stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()


def _connected(process: subprocess.Popen[bytes]) -> http.client.HTTPConnection:
    """Wait until a service is ready, by its log in a pipe, and connect."""
    assert process.stderr is not None
    lines = map(json.loads, process.stderr)
    port = int(next(line["address"] for line in lines if line["event"] == "listening").rpartition(":")[2])
    next(line for line in lines if line["event"] == "ready")
    return http.client.HTTPConnection("127.0.0.1", port, timeout=5)


def _fill_the_log(connection: http.client.HTTPConnection) -> None:
    while True:  # each error is a log line
        assert ask(connection, "PUT", BASKET_PATH.format("ann", 1), {})[0] == 400
