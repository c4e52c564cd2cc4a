"""The memory of a shop: `python benchmarks/memory.py`.

Shops of several sizes have the users of The Complete Journey: a part of them, or all of them several times, under
other ids. Each is measured in separate processes: the engine after `fit`, and `unbasket serve` after it has become
ready and served some requests. The peak is that of loading; a machine without that much memory kills the service at its
start.
The base and the bytes per purchase are the line through the smallest and the largest shop.
"""

import http.client
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import polars as pl
from rich.console import Console
from rich.progress import track
from rich.table import Table

from unbasket.datasets import Dataset, load, write_published

COPIES = (0.25, 1, 4)  # of all users
OTHER = 10_000  # more than the highest user id
REQUESTS = 200

ENGINE = """
import gc, sys, unbasket as ub
from unbasket.datasets import load
data = load(sys.argv[1])
rec = ub.Recommender().fit(data.history)
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
with ub.open(sys.argv[2]) as rec:
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


def write_shop(copies: float, path: Path) -> None:
    """Write a part of the histories of The Complete Journey, or several copies under other user ids."""
    history = load("completejourney").history
    if copies < 1:
        history = history.filter(pl.col("user") % round(1 / copies) == 0)
    parts = [history.with_columns(pl.col("user") + copy * OTHER) for copy in range(max(1, int(copies)))]
    write_published(Dataset(path.stem, pl.concat(parts)), path)


def engine(shop: Path) -> tuple[int, ProcessMemory]:
    """Return the number of purchases, and the memory of an engine with them."""
    purchases, _, status = _printed(ENGINE, shop).partition("\n")
    return int(purchases), _of(status)


def service(shop: Path) -> ProcessMemory:
    """Return the memory of a service."""
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "shop.db")
        users = json.loads(_printed(FILL, shop, db).replace("'", '"'))
        program = [sys.executable, "-c", "from unbasket.cli import app; app()", "serve", "--db", str(db), "--port", "0"]
        with subprocess.Popen(program, stderr=subprocess.PIPE) as process:
            assert process.stderr is not None
            lines = map(json.loads, process.stderr)
            address = next(line["address"] for line in lines if "address" in line).removeprefix("http://")
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
    for copies in track(COPIES, "measuring", console=Console(stderr=True)):
        with tempfile.TemporaryDirectory() as folder:
            write_shop(copies, shop := Path(folder, "shop.parquet"))
            purchases, ours = engine(shop)
            served = service(shop)
        for name, value in zip(LINES, (*ours, *served), strict=True):
            measured.setdefault(name, []).append((purchases, value))
        sizes.add_row(
            f"{copies:g} of the users", f"{purchases:,}", *(f"{value / 1e6:,.0f} MB" for value in (*ours, *served))
        )
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
