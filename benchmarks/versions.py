"""Recommendations over HTTP and HTTPS beside the service of another checkout: `python -m benchmarks.versions DIR`.

DIR is a checkout of this project after `make setup`. All services have Ta-Feng, or The Complete Journey where Ta-Feng
is missing, and check a key and a rate limit. They take turns in short runs of wrk, so other load on the machine slows
all alike.
"""

import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from benchmarks.service import CONNECTIONS, REPORT, Load, measured, started, wrk
from rich.console import Console
from rich.progress import track
from rich.table import Table
from tests.service.certificates import Authority

from unbasket import datasets
from unbasket.errors import DatasetError

SECONDS = 3

LOAD = """
import sys, unbasket as ub
from unbasket.datasets import load
with ub.open(sys.argv[1]) as rec:
    rec.fit(load(sys.argv[2]).history)
    print(",".join(map(str, rec.users())))
"""
KEYS = """
import sys
from pathlib import Path
from unbasket.service.api_keys import KeyFile
from unbasket.service.settings import access_of
with KeyFile.changing(access_of(Path(sys.argv[1]))) as keys:
    print(keys.add("benchmark", ["read"]))
"""
SERVE = "from unbasket.cli import app; app()"
READ = """
request = function()
  return wrk.format("GET", "/v1/users/" .. users[math.random(#users)] .. "/recommendations", {["Authorization"] = key})
end
"""


def python(checkout: Path, *arguments: str) -> str:
    """Return the output of a program under the Python of a checkout."""
    command = [str(checkout / ".venv/bin/python"), "-c", *arguments]
    return subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True).stdout.strip()


class Service(NamedTuple):
    """A service of a checkout: its name, its address, and a script of wrk that reads from it with a key."""

    name: str
    address: str
    script: Path


@contextmanager
def serving(name: str, checkout: Path, folder: Path, data: str, flags: Sequence[str] = ()) -> Iterator[Service]:
    """Start a service on a database of the checkout's own version."""
    db, script = folder / f"{name}.db", folder / f"{name}.lua"
    users, key = python(checkout, LOAD, str(db), data), python(checkout, KEYS, str(db))
    script.write_text(f'local users, key = {{{users}}}, "Bearer {key}"\n{READ}{REPORT}')
    command = [str(checkout / ".venv/bin/python"), "-c", SERVE, "serve", "--db", str(db), "--port", "0"]
    with started([*command, "--rate", "1000000", *flags], folder / f"{name}.log") as (address, _):
        yield Service(name, address, script)


def measured_in_turns(services: list[Service], connections: int, rounds: int) -> dict[str, list[Load]]:
    """Return the loads of each service, from short runs that take turns."""
    runs: dict[str, list[Load]] = {service.name: [] for service in services}
    for _ in track(range(rounds), f"{connections} connections", console=Console(stderr=True), transient=True):
        for name, address, script in services:
            load = measured(wrk(address, script, connections, SECONDS))
            assert not load.errors, f"{name}: {load}"
            runs[name].append(load)
    return runs


def main(
    other: Annotated[Path, typer.Argument(metavar="DIR", help="The other checkout.", exists=True)],
    rounds: Annotated[int, typer.Option(help="Runs of each service for each number of connections.")] = 5,
) -> None:
    """Measure and print the table."""
    try:
        data = datasets.load("tafeng").name
    except DatasetError:  # its file is not here
        data = "completejourney"
    here = Path(__file__).parent.parent
    table = Table("connections", "service", "requests/s", "p50, ms", "p99, ms", "of other", "of ours", title=data)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        certificate, secret = Authority(folder).issue("server")
        services = [
            stack.enter_context(serving("other", other.resolve(), folder, data)),
            stack.enter_context(serving("ours", here, folder, data)),
            stack.enter_context(
                serving("TLS", here, folder, data, ["--tls-cert", str(certificate), "--tls-key", str(secret)])
            ),
        ]
        for connections in CONNECTIONS:
            runs = measured_in_turns(services, connections, rounds)
            for label, loads in runs.items():
                rate, p50, p99 = (statistics.median(getattr(x, y) for x in loads) for y in ("rate", "p50", "p99"))
                shares = _share(loads, runs["other"]), _share(loads, runs["ours"])
                table.add_row(str(connections), label, f"{rate:,.0f}", f"{1e3 * p50:.2f}", f"{1e3 * p99:.2f}", *shares)
    Console(width=120).print(table)


def _share(loads: list[Load], base: list[Load]) -> str:
    """Return the median of the ratios of runs that followed each other."""
    return f"{statistics.median(mine.rate / one.rate for mine, one in zip(loads, base, strict=True)):.2f}"


if __name__ == "__main__":
    typer.run(main)
