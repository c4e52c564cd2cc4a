"""The service on The Complete Journey beside the same server with a constant response, by wrk: `make bench`.

Both run under aiohttp with the same settings, in one process each, and alternate in short runs, so other load
on the machine slows both alike. Then a mixed load (90 % recommend, 9 % learn, 1 % forget) runs for a minute, while
another connection only reads recommendations: its latency is compared with that under a read-only load. Learned baskets
stay, so memory grows; a restarted service shows how much of the growth is the larger model. Its memory must then stay
constant under a load that forgets as much as it learns.
"""

import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import uvloop
from aiohttp import web
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import unbasket as ub
from unbasket.datasets import load
from unbasket.service.app import Application
from unbasket.service.response import Response
from unbasket.service.server import Server, free_address
from unbasket.service.settings import Settings

RUNS, SECONDS = 3, 5
MIXED_SECONDS = 60
CONNECTIONS = (1, 32)
SERVE = [sys.executable, "-c", "from unbasket.cli import app; app()", "serve", "--port", "0"]

REPORT = """
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"seconds":%f,"errors":%d,"p50":%f,"p90":%f,"p99":%f}\\n', summary.requests,
    summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e6, latency:percentile(90) / 1e6, latency:percentile(99) / 1e6))
end
"""
READ = """
request = function() return wrk.format("GET", "/v1/users/" .. users[math.random(#users)] .. "/recommendations") end
"""
PACE = """
delay = function() return math.random(0, 64) end
"""  # 32 ms on average: with 33 connections, about 1,000 requests a second
PACED_CONNECTIONS = 33
MIXED = """
local json, learned, number = {["Content-Type"] = "application/json"}, {}, 0
local read = request
request = function()
  local die = math.random(100)
  if die > 10 then return read() end
  if die <= forgets and #learned > 200 then return wrk.format("DELETE", table.remove(learned, 1)) end
  number = number + 1
  local path = "/v1/users/" .. users[math.random(#users)] .. "/baskets/" .. 1e9 + number
  learned[#learned + 1] = path
  return wrk.format("PUT", path, json, items[math.random(#items)])
end
"""


class Load(NamedTuple):
    """The measurements of wrk; seconds."""

    rate: float
    p50: float
    p90: float
    p99: float
    errors: int


def wrk(address: str, script: Path, connections: int, seconds: int) -> "subprocess.Popen[str]":
    """Start a load."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def measured(process: "subprocess.Popen[str]") -> Load:
    """Wait for the end of a load, and return its measurements."""
    output, _ = process.communicate()
    line = next((line for line in output.splitlines() if line.startswith("{")), None)
    if line is None:
        raise SystemExit(f"wrk failed: {output}")
    facts = json.loads(line)
    return Load(facts["requests"] / facts["seconds"], facts["p50"], facts["p90"], facts["p99"], facts["errors"])


@contextmanager
def started(command: list[str], log: Path) -> Iterator[tuple[str, int]]:
    """Start a server, yield its address and process id when it is ready, and stop it afterwards."""
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream)
    try:
        while '"ready"' not in (text := log.read_text()):
            if process.poll() is not None:
                raise SystemExit(f"{command} exited: {text}")
            time.sleep(0.1)
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        yield next(line["address"] for line in lines if "address" in line), process.pid
    finally:
        process.terminate()
        process.wait()


def processor_time(process: int) -> float:
    """Return the processor seconds of a process."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Scripts(NamedTuple):
    """Scripts of wrk: reads, paced reads, a mixed load that mostly learns, and one that forgets as much."""

    read: Path
    paced: Path
    mixed: Path
    steady: Path


def scripts(folder: Path, rec: ub.DurableRecommender) -> Scripts:
    """Write the scripts."""
    users = ",".join(map(str, rec.users()))
    baskets = [rec.history(user)[-1].items for user in rec.users()[:500]]
    items = ",".join(f"'{json.dumps({'items': basket})}'" for basket in baskets)
    made = Scripts(*(folder / f"{name}.lua" for name in Scripts._fields))
    made.read.write_text(f"local users = {{{users}}}\n{READ}{REPORT}")
    made.paced.write_text(f"local users = {{{users}}}\n{READ}{PACE}{REPORT}")
    for script, forgets in ((made.mixed, 1), (made.steady, 5)):
        known = f"local users, items, forgets = {{{users}}}, {{{items}}}, {forgets}"
        script.write_text(f"{known}\n{READ}{MIXED}{REPORT}")
    return made


class Constant(Application):
    """An application that responds the same to all requests."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def keep_time(self) -> None:
        """Do nothing, until cancelled: there are no tokens."""
        await asyncio.Event().wait()

    def close(self) -> None:
        """Do nothing."""

    async def __call__(self, _: web.BaseRequest) -> Response:
        """Respond."""
        return Response(200, self._body, {"content-type": "application/json"})


async def constant(size: int) -> None:
    """Serve a constant response of `size` bytes."""
    server = Server(Constant(b"x" * size), Settings(db=Path("none")), free_address("127.0.0.1", 0))
    ready = json.dumps({"event": "ready", "address": server.url})
    await server.run(lambda: print(ready, flush=True))  # noqa: T201


def with_cost(address: str, process: int, script: Path, connections: int) -> tuple[Load, float]:
    """Measure a load, and the processor seconds per request, which other load on the machine affects less."""
    start = processor_time(process)
    load = measured(wrk(address, script, connections, SECONDS))
    return load, (processor_time(process) - start) / (load.rate * SECONDS)


def reading(table: Table, servers: list[tuple[str, int]], script: Path, progress: Progress) -> None:
    """Measure reads of both servers, alternately."""
    task = progress.add_task("reading", total=len(CONNECTIONS) * RUNS)
    for connections in CONNECTIONS:
        runs, costs = [], []
        for _ in range(RUNS):
            pair = [with_cost(*server, script, connections) for server in servers]
            runs.append([load for load, _ in pair])
            costs.append([cost for _, cost in pair])
            progress.advance(task)
        share = statistics.median(mine.rate / constant.rate for mine, constant in runs)
        mine, bare = ([pair[index] for pair in runs] for index in (0, 1))
        rated = [f"{statistics.median(load.rate for load in loads):,.0f}" for loads in (mine, bare)]
        table.add_row(
            f"recommendations per second, {connections} connections",
            *rated,
            f"{share:.0%}",
            "",
        )
        cost = [statistics.median(column) for column in zip(*costs, strict=True)]
        spent = [f"{1e6 * seconds:.0f}" for seconds in cost]
        table.add_row("  processor time of a request, µs", *spent, f"{cost[1] / cost[0]:.0%}", "")
        for name in ("p50", "p90", "p99"):
            times = [statistics.median(getattr(load, name) for load in loads) for loads in (mine, bare)]
            table.add_row(f"  {name}, ms", *(f"{1000 * value:.2f}" for value in times), "", "")
        if any(load.errors for pair in runs for load in pair):
            raise SystemExit(f"errors while reading: {runs}")


def pacing(table: Table, address: str, script: Path) -> None:
    """Measure the latency of requests at a fixed pace."""
    loads = [measured(wrk(address, script, PACED_CONNECTIONS, SECONDS)) for _ in range(RUNS)]
    p90 = statistics.median(load.p90 for load in loads)
    rate = statistics.median(load.rate for load in loads)
    table.add_row(
        f"p90 at {rate:,.0f} requests per second, ms", f"{1000 * p90:.2f}", "", "", _verdict(p90 <= 1.5e-3, "1.5")
    )


def mixing(table: Table, address: str, process: int, scripts: Scripts, progress: Progress) -> int:
    """Compare the mixed load with the read-only load; return the growth of the service in bytes."""
    _, alone = _Running(address, scripts.read, scripts.read, 15).finish()
    load, probe, memory = _watched(address, process, scripts.mixed, scripts.read, progress, "mixed load")
    ratio = probe.p99 / alone.p99
    table.add_row(
        f"mixed load for {MIXED_SECONDS} s, requests per second",
        f"{load.rate:,.0f}",
        "",
        "",
        _verdict(not load.errors, "no error"),
    )
    table.add_row(
        "  p99 of recommend in it, and of reads only, ms",
        f"{1000 * probe.p99:.2f}",
        f"{1000 * alone.p99:.2f}",
        f"{ratio:.1f} x",
        _verdict(ratio <= 3, "3 x"),
    )
    table.add_row("  resident memory every 10 s, MiB", _in_mib(*memory), "", f"{memory[-1] / memory[0] - 1:+.0%}", "")
    return memory[-1] - memory[0]


def balancing(
    table: Table, address: str, process: int, scripts: Scripts, before: int, growth: int, progress: Progress
) -> None:
    """Measure the memory of the larger shop in a restarted service, and under a load that forgets as much as it learns.

    `before` is the memory of the original shop in a new service.
    """
    larger = _settled(address, process, scripts) - before
    table.add_row(
        "  of the growth, memory of the same shop after a restart, MiB",
        _in_mib(larger),
        _in_mib(growth),
        f"{larger / growth:.0%}",
        "",
    )
    load, _, memory = _watched(address, process, scripts.steady, scripts.read, progress, "balanced load")
    change = memory[-1] / memory[1] - 1
    table.add_row(
        f"as much forgotten as learned for {MIXED_SECONDS} s, requests per second",
        f"{load.rate:,.0f}",
        "",
        "",
        _verdict(not load.errors, "no error"),
    )
    table.add_row(
        "  resident memory every 10 s, MiB", _in_mib(*memory), "", f"{change:+.0%}", _verdict(change < 0.1, "10 %")
    )


def _settled(address: str, process: int, scripts: Scripts) -> int:
    """Return the memory of a service after some seconds of load."""
    _Running(address, scripts.read, scripts.read, SECONDS).finish()
    return _memory(process)


def _watched(
    address: str, process: int, script: Path, probe: Path, progress: Progress, description: str
) -> tuple[Load, Load, list[int]]:
    """Run a load and a probe for a minute, and record the service's memory every ten seconds."""
    task = progress.add_task(description, total=MIXED_SECONDS)
    memory, running = [_memory(process)], _Running(address, script, probe, MIXED_SECONDS)
    for _ in range(MIXED_SECONDS // 10):
        time.sleep(10)
        memory.append(_memory(process))
        progress.advance(task, 10)
    load, probed = running.finish()
    progress.remove_task(task)
    return load, probed, memory


def _in_mib(*sizes: int) -> str:
    return ", ".join(f"{size / 2**20:.0f}" for size in sizes)


class _Running:
    """A load of 32 connections, and a measured connection that only reads."""

    def __init__(self, address: str, script: Path, probe: Path, seconds: int) -> None:
        self._processes = wrk(address, script, CONNECTIONS[-1], seconds), wrk(address, probe, 1, seconds)

    def finish(self) -> tuple[Load, Load]:
        load, probe = map(measured, self._processes)
        return load, probe


def _memory(process: int) -> int:
    return 4096 * int(Path(f"/proc/{process}/statm").read_text().split()[1])


def _verdict(reached: bool, goal: str) -> str:
    return f"[green]yes[/] ({goal})" if reached else f"[red]no[/] ({goal})"


def main() -> None:
    """Run everything and print the table."""
    if shutil.which("wrk") is None:
        raise SystemExit("this needs wrk, which makes the load: apt install wrk")
    table = Table("work", "ours", "constant", "share", "reached", title="Unbasket: the service")
    with (
        tempfile.TemporaryDirectory() as name,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        folder = Path(name)
        data = load("completejourney")
        with ub.open(folder / "shop.db") as rec:
            rec.fit(data.history)
            made = scripts(folder, rec)
            user = rec.users()[0]
        serve = [*SERVE, "--db", str(folder / "shop.db")]
        with started(serve, folder / "ours.log") as (ours, process):
            before = _settled(ours, process, made)
            response = urllib.request.urlopen(f"{ours}/v1/users/{user}/recommendations").read()
            command = [sys.executable, __file__, "--constant", str(len(response))]
            with started(command, folder / "constant.log") as other:
                reading(table, [(ours, process), other], made.read, progress)
            pacing(table, ours, made.paced)
            growth = mixing(table, ours, process, made, progress)
        with started(serve, folder / "again.log") as (ours, process):
            balancing(table, ours, process, made, before, growth, progress)
    Console(width=140).print(table)


if __name__ == "__main__":
    uvloop.run(constant(int(sys.argv[2]))) if sys.argv[1:2] == ["--constant"] else main()
