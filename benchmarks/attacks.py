"""Attacks on a running service, and their effect on another caller: `python -m benchmarks.attacks`.

The service has the shop of The Complete Journey and keys. A caller requests recommendations and learns baskets at a
steady pace, alternately without and with an attack. The attacker runs on the same machine at a lower priority, since
real attackers use their own machines. The memory of the service is measured before, during and after.

With `--write`, the table in SECURITY.md is updated. Arguments select the attacks with one of them in their name.
"""

import http.client
import json
import os
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.service import SERVE, started
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import unbasket as ub
from benchmarks import pages
from unbasket.datasets import load
from unbasket.service.api_keys import KeyFile
from unbasket.service.settings import access_of

REPEATS, SECONDS = 3, 2.0
PACE = 0.005  # seconds between two requests of the caller
MIB = 2**20
PAGE = Path(__file__).parent.parent / "SECURITY.md"
ELSEWHERE = "127.0.0.2"  # the attacker's address
PING = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LINES = b"".join(b"a%d: b\r\n" % number for number in range(10_000))
RULES = "a" + ".a" * 50_000 + "=1"


class Target(NamedTuple):
    """The service: its port, process and database, and the credentials of the attacker."""

    port: int
    process: int
    db: Path
    key: str
    token: str
    user: int
    receipts: bytes

    def connected(self) -> socket.socket:
        """Open a connection from the attacker's address."""
        return socket.create_connection(("127.0.0.1", self.port), 5, (ELSEWHERE, 0))

    def ask(self, method: str, path: str, body: bytes | None = None, key: str | None = None) -> int:
        """Send a request of the attacker, and return the status."""
        headers = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, 60, source_address=(ELSEWHERE, 0))
        with closing(connection):
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            response.read()
            return response.status

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return os.sysconf("SC_PAGESIZE") * int(Path(f"/proc/{self.process}/statm").read_text().split()[1])


class Attack(NamedTuple):
    """Work that a number of threads repeat until the time is over."""

    point: int
    name: str
    threads: int
    work: Callable[[Target], object]
    meanwhile: Callable[[Target], Any] = lambda _: ExitStack()


# 1. Without a key -----------------------------------------------------------------------------------------------


def headers_without_end(target: Target) -> None:
    with target.connected() as connection, suppress(OSError):
        connection.sendall(PING[:-2])
        for _ in range(256 * MIB // len(LINES)):
            connection.sendall(LINES)


def a_header_without_end(target: Target) -> None:
    with target.connected() as connection, suppress(OSError):
        connection.sendall(PING[:-2] + b"a: ")
        for _ in range(2048):
            connection.sendall(b"x" * 65536)


def requests_without_a_reader(target: Target) -> None:
    with target.connected() as connection, suppress(OSError):
        connection.settimeout(1)  # raises when the server stops reading
        while True:
            connection.sendall(PING * 1000)


def half_sent_requests(target: Target) -> None:
    with ExitStack() as stack, suppress(OSError):
        for _ in range(300):
            stack.enter_context(target.connected()).sendall(PING[:30])
        time.sleep(1)


def unknown_addresses(target: Target) -> None:
    with target.connected() as connection, suppress(OSError):
        for number in range(20):
            connection.sendall(b"GET /v1/no%d HTTP/1.1\r\nHost: localhost\r\n\r\n" % number)
            connection.recv(65536)


# 2. With one user's token, or a key that may read -------------------------------------------------------------


def explanations_by_token(target: Target) -> None:
    target.ask("GET", f"/v1/users/{target.user}/recommendations?n=100&explain=true", key=target.token)


def explanations_by_key(target: Target) -> None:
    target.ask("GET", f"/v1/users/{target.user}/recommendations?n=100&explain=true")


def previews(items: int) -> Callable[[Target], None]:
    body = json.dumps({"learn": {"items": [f"unknown-{number}" for number in range(items)]}}).encode()

    def work(target: Target) -> None:
        target.ask("POST", f"/v1/users/{target.user}/preview", body, target.token)

    return work


def verifications(target: Target) -> None:
    target.ask("POST", f"/v1/users/{target.user}/verify", key=target.token)


# 3. Input that costs more than its length -------------------------------------------------------------------------


def deep_rules(target: Target) -> None:
    target.ask("POST", "/v1/retention", json.dumps({"rules": RULES}).encode())


def deep_ids(target: Target) -> None:
    target.ask("GET", f"/v1/users/{'%5B' * 5_000}/recommendations?exclude={'[' * 500}")


def many_forgets(count: int) -> Callable[[Target], None]:
    body = json.dumps([{"event": "forget", "user": f"nobody-{number}"} for number in range(count)]).encode()

    def work(target: Target) -> None:
        target.ask("POST", "/v1/events", body)

    return work


def given_receipts(target: Target) -> None:
    target.ask("POST", "/v1/receipts/verify", target.receipts)


def all_receipts(target: Target) -> None:
    target.ask("POST", "/v1/receipts/verify")


# 4. An erasure that another program blocks ------------------------------------------------------------------------


@contextmanager
def reading_elsewhere(target: Target) -> Iterator[None]:
    """Keep a read transaction of another program open."""
    with closing(sqlite3.connect(target.db, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM baskets").fetchone()
        yield


def blocked_erasure(target: Target) -> None:
    target.ask("PUT", "/v1/users/blocked/baskets/1", b'{"items": ["tea"]}')
    target.ask("DELETE", "/v1/users/blocked")


ATTACKS = (
    Attack(1, "256 MiB of headers on a connection", 2, headers_without_end),
    Attack(1, "a header of 128 MiB", 2, a_header_without_end),
    Attack(1, "6 connections that ask and never read", 6, requests_without_a_reader),
    Attack(1, "300 half-sent requests", 1, half_sent_requests),
    Attack(1, "unknown addresses, 8 connections", 8, unknown_addresses),
    Attack(2, "one token, 32 at once: 100 explained", 32, explanations_by_token),
    Attack(2, "one key, 32 at once: 100 explained", 32, explanations_by_key),
    Attack(2, "one token, 4 at once: previews of 500 new items", 4, previews(500)),
    Attack(2, "one token, 4 at once: previews of 8,000 new items", 4, previews(8_000)),
    Attack(2, "one token, 4 at once: verify", 4, verifications),
    Attack(3, "16 at once: rules 50,000 keys deep", 16, deep_rules),
    Attack(3, "ids of 5,000 brackets, 4 at once", 4, deep_ids),
    Attack(3, "100,000 forgets in a request", 2, many_forgets(100_000)),
    Attack(3, "10,000 receipts to verify", 2, given_receipts),
    Attack(3, "all 2,000 receipts to verify, 4 at once", 4, all_receipts),
    Attack(3, "1,000 forgets in a request", 1, many_forgets(1_000)),
    Attack(4, "erasures that another reader blocks", 2, blocked_erasure, reading_elsewhere),
)


class Latencies(NamedTuple):
    """Latencies of a caller in seconds: the median and the 99th percentile of reads and of learns."""

    read: tuple[float, float]
    learn: tuple[float, float]


def call(port: int, key: str, users: list[int], seconds: float) -> None:
    """Run the caller, in its own process: read and learn, and print the latencies."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, 60)
    times: tuple[list[float], list[float]] = [], []
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number += 1
        learns = number % 4 == 0
        start = time.perf_counter()
        if learns:
            body = json.dumps({"items": [number % 8, "tea"]})  # an edit: the shop does not grow
            connection.request("PUT", f"/v1/users/caller/baskets/{number % 16}", body, headers)
        else:
            connection.request("GET", f"/v1/users/{users[number % len(users)]}/recommendations", headers=headers)
        response = connection.getresponse()
        response.read()
        times[learns].append(time.perf_counter() - start)
        if response.status != 200:
            raise SystemExit(f"the caller got {response.status}")
        time.sleep(PACE)
    print(json.dumps([_percentiles(each) for each in times]))  # noqa: T201


def _percentiles(times: list[float]) -> tuple[float, float]:
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


def latencies(target: Target, key: str, users: list[int], meanwhile: Callable[[], None]) -> Latencies:
    """Measure the caller's latencies, calling `meanwhile` repeatedly."""
    arguments = [str(target.port), key, json.dumps(users), str(SECONDS)]
    command = [sys.executable, "-m", "benchmarks.attacks", "--caller", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            meanwhile()
        assert process.stdout is not None
        output = process.stdout.read()
    if process.returncode:
        raise SystemExit("the caller failed")
    read, learn = json.loads(output)
    return Latencies(tuple(read), tuple(learn))


class Outcome(NamedTuple):
    """Latencies without and with an attack, and the memory before, at its peak and afterwards."""

    usual: Latencies
    attacked: Latencies
    memory: tuple[int, int, int]

    @property
    def ratios(self) -> list[float]:
        """Ratios of the latencies: medians and 99th percentiles of reads and learns."""
        return [
            during / before
            for kind in ("read", "learn")
            for during, before in zip(getattr(self.attacked, kind), getattr(self.usual, kind), strict=True)
        ]


def outcome(attack: Attack, target: Target, key: str, users: list[int]) -> Outcome:
    """Measure one attack."""
    before = peak = target.memory

    def watch_memory() -> None:
        nonlocal peak
        peak = max(peak, target.memory)
        time.sleep(0.01)

    repeats = []
    for _ in range(REPEATS):
        usual = latencies(target, key, users, watch_memory)
        with attack.meanwhile(target), _repeated(attack, target):
            repeats.append((usual, latencies(target, key, users, watch_memory)))
        time.sleep(0.5)
    usual, attacked = (_median([pair[index] for pair in repeats]) for index in (0, 1))
    return Outcome(usual, attacked, (before, peak, target.memory))


@contextmanager
def _repeated(attack: Attack, target: Target) -> Iterator[None]:
    """Repeat the attack in threads within the context."""
    over = threading.Event()

    def repeat() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        while not over.is_set():
            attack.work(target)

    threads = [threading.Thread(target=repeat, daemon=True) for _ in range(attack.threads)]
    for thread in threads:
        thread.start()
    yield
    over.set()
    for thread in threads:
        thread.join()


def _median(repeats: list[Latencies]) -> Latencies:
    """Return the median of each figure."""
    return Latencies(*(tuple(map(statistics.median, zip(*kind, strict=True))) for kind in zip(*repeats, strict=True)))


@contextmanager
def attacked(folder: Path) -> Iterator[tuple[Target, str, list[int]]]:
    """Start a service with keys; yield it, the key of a caller, and users to query."""
    db, data, access = folder / "shop.db", load("completejourney"), KeyFile.new()
    keys = [access.add(name, ["admin"]) for name in ("caller", "attacker")]
    access.write(access_of(db))
    with ub.open(db) as rec:
        rec.fit(data.history)
        rec.change_ids(user="text", item="text")  # the requests below name users and items by texts
        users = [int(user) for user in rec.users()[:500]]
        rec.apply([ub.Forget(f"nobody-{number}", None, None) for number in range(2000)])  # a chain to verify
        receipts = b'{"receipts":[' + b",".join([rec.receipts(1, 1)[0].to_json()] * 10_000) + b"]}"
    with started([*SERVE, "--db", str(db)], folder / "service.log") as (address, process):
        port = int(address.rpartition(":")[2])
        request = {"Authorization": f"Bearer {keys[1]}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", port, 60)
        connection.request("POST", "/v1/tokens", json.dumps({"user": users[0]}), request)
        token = json.loads(connection.getresponse().read())["token"]
        connection.close()
        yield Target(port, process, db, keys[1], token, users[0], receipts), keys[0], users


def in_ms(latency: tuple[float, float]) -> str:
    """Format a median and a 99th percentile in milliseconds."""
    return f"{1000 * latency[0]:.1f} / {1000 * latency[1]:.1f}"


def write(outcomes: dict[str, Outcome]) -> None:
    """Replace the table in SECURITY.md."""
    rows = ["| attack | reads, ms | learns, ms | times, medians | memory, MiB |", "| --- | --- | --- | --- | --- |"]
    for name, (usual, attacked, memory) in outcomes.items():
        reads, learns = (f"{in_ms(before)} → {in_ms(now)}" for before, now in zip(usual, attacked, strict=True))
        times = " / ".join(f"{now[0] / before[0]:.1f}" for before, now in zip(usual, attacked, strict=True))
        sizes = " → ".join(f"{size / MIB:.0f}" for size in memory)
        rows.append(f"| {name} | {reads} | {learns} | {times} | {sizes} |")
    pages.write(PAGE, "benchmarks/attacks.py", "\n".join(rows))


def main() -> None:
    """Run the attacks, and print the latencies of the other caller."""
    table = Table(title="Latencies of another caller during an attack: median / 99th percentile, ms")
    for name in ("point", "attack", "reads: usual", "attacked", "learns: usual", "attacked", "times", "memory, MiB"):
        table.add_column(name)
    wanted = [word for word in sys.argv[1:] if word != "--write"]  # none: all attacks
    chosen = [attack for attack in ATTACKS if not wanted or any(word in attack.name for word in wanted)]
    outcomes = {}
    with (
        tempfile.TemporaryDirectory() as name,
        Progress(console=Console(stderr=True), transient=True) as progress,
        attacked(Path(name)) as (target, key, users),
    ):
        latencies(target, key, users, lambda: time.sleep(0.01))  # warm up: one-time growth of memory happens here
        for attack in progress.track(chosen, description="attacking"):
            found = outcomes[attack.name] = outcome(attack, target, key, users)
            figures = [
                in_ms(latency)
                for kind in ("read", "learn")
                for latency in (getattr(found.usual, kind), getattr(found.attacked, kind))
            ]
            ratios = " ".join(f"{ratio:.1f}" for ratio in found.ratios)
            memory = " → ".join(f"{size / MIB:.0f}" for size in found.memory)
            table.add_row(str(attack.point), attack.name, *figures, ratios, memory)
    Console(width=160).print(table)
    if "--write" in sys.argv:
        write(outcomes)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--caller"]:
        call(int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), float(sys.argv[5]))
    else:
        main()
