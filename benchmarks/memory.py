"""The memory of a shop: `python benchmarks/memory.py`.

Each shop is measured in separate processes: the engine after `fit`, and `unbasket serve` after it has become ready and
served some requests. The peak is that of loading; a machine without that much memory kills the service at its start.
The base and the bytes per purchase are the line through the smallest and the
largest shop.
"""

import http.client
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

SHOPS = ("tafeng", "instacart", "valuedshopper")
REQUESTS = 200

ENGINE = """
import gc, sys, unbasket as ub
from unbasket.datasets import load
data = load(sys.argv[1])
rec = ub.Recommender(data.params).fit(data.history)
for user in rec.users()[:200]:
    rec.recommend(user)
gc.collect()
print(rec.sizes().purchases)
print(open("/proc/self/status").read())
"""
FILL = """
import sys, unbasket as ub
from unbasket.datasets import load
data = load(sys.argv[1])
with ub.open(sys.argv[2], data.params) as rec:
    rec.fit(data.history)
    print(rec.users()[:200])
"""


class ProcessMemory(NamedTuple):
    """Bytes of a process: current and peak."""

    resident: int
    peak: int


def _of(status: str) -> ProcessMemory:
    values = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Vm"))
    return ProcessMemory(*(int(values[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")))


def _printed(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def engine(shop: str) -> tuple[int, ProcessMemory]:
    """Return the number of purchases, and the memory of an engine with them."""
    purchases, _, status = _printed(ENGINE, shop).partition("\n")
    return int(purchases), _of(status)


def service(shop: str) -> ProcessMemory:
    """Return the memory of a service."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "shop.db")
        users = json.loads(_printed(FILL, shop, db).replace("'", '"'))
        program = [sys.executable, "-c", "from unbasket.cli import app; app()", "serve", "--db", str(db), "--port", "0"]
        with subprocess.Popen(program, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            lines = map(json.loads, process.stderr)
            address = next(lines)["address"].removeprefix("http://")
            next(line for line in lines if line["event"] == "ready")
            _request(address, users)
            status = Path(f"/proc/{process.pid}/status").read_text()
            process.terminate()
            process.stderr.read()
    return _of(status)


def _request(address: str, users: list[int | str]) -> None:
    connection = http.client.HTTPConnection(address)
    for user in users[:REQUESTS]:
        connection.request("GET", f"/v1/users/{user}/recommendations")
        assert connection.getresponse().read()
    connection.close()


def main() -> None:
    """Measure, and print the table of docs/operations.md."""
    measured: dict[str, list[tuple[int, int]]] = {}
    sizes = Table("shop", "purchases", "engine", "its peak", "service", "its peak")
    for shop in track(SHOPS, "measuring", console=Console(stderr=True)):
        purchases, ours = engine(shop)
        served = service(shop)
        for name, value in zip(LINES, (*ours, *served), strict=True):
            measured.setdefault(name, []).append((purchases, value))
        sizes.add_row(shop, f"{purchases:,}", *(f"{value / 1e6:,.0f} MB" for value in (*ours, *served)))
    console = Console()
    console.print(sizes)
    console.print("| | base | bytes per purchase |\n| --- | --- | --- |", highlight=False)
    for name, points in measured.items():
        (few, small), *_, (many, large) = sorted(points)
        slope = (large - small) / (many - few)
        console.print(f"| {name} | {(small - slope * few) / 1e6:.0f} MB | {slope:.0f} |", highlight=False)


LINES = ("the engine", "the engine, at its peak", "the service", "the service, at its peak")

if __name__ == "__main__":
    main()
