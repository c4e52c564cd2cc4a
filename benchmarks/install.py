"""A fresh installation: build time, size, and time to first use. `make bench`.

The package is built from a copy of its sources, on all processors, and installed without extras.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

ROOT = Path(__file__).parents[1]
RUNS = 5

FIRST_USE = """
import time
start = time.perf_counter()
import unbasket
imported = time.perf_counter()
rec = unbasket.Recommender()
rec.learn("ann", ["milk", "bread"], basket=1)
learned = time.perf_counter()
rec.recommend("ann")
print(imported - start, learned - start, int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6)
"""


def run(*command: object) -> str:
    """Run a command outside the source tree, and return its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, command)], env=environment, cwd="/", capture_output=True, text=True, check=True
    ).stdout


def build(folder: Path) -> tuple[Path, float]:
    """Build a wheel from a clean copy, and return it with the seconds."""
    source = folder / "source"
    shutil.copytree(
        ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", ".build_fingerprint", "*.egg-info")
    )
    for file in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / file, source)
    start = time.perf_counter()
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", folder, source)
    return next(folder.glob("*.whl")), time.perf_counter() - start


def install(wheel: Path, folder: Path) -> tuple[Path, float]:
    """Install the package into an environment; return its Python, and the size of all packages in MB."""
    run(sys.executable, "-m", "uv", "venv", folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "uv", "pip", "install", "--python", python, wheel)
    files = [file for file in (folder / "lib").rglob("*") if file.is_file()]
    return python, sum(file.stat().st_size for file in files) / 1e6


def seconds(work: Callable[[], object]) -> float:
    """Return the median time of a few runs."""

    def once() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return statistics.median(once() for _ in range(RUNS))


def measure(folder: Path, progress: Progress) -> list[tuple[str, float, str, float]]:
    """Measure; return names, figures, units and limits."""
    task = progress.add_task("building", total=3)
    wheel, building = build(folder)
    progress.update(task, advance=1, description="installing")
    python, size = install(wheel, folder / "installed")
    progress.update(task, advance=1, description="starting")
    runs = [map(float, run(python, "-c", FIRST_USE).split()) for _ in range(RUNS + 1)][1:]  # the first writes bytecode
    importing, learning, resident = (statistics.median(figures) for figures in zip(*runs, strict=True))
    helping = seconds(lambda: run(python.with_name("unbasket"), "--help"))
    return [
        ("build of the package, from nothing", building, "s", 90),
        ("installed size, with all that it needs", size, "MB", 330),
        ("import unbasket", importing, "s", 0.3),
        ("first learn of a new process, import included", learning, "s", 0.5),
        ("resident memory after the first recommendation", resident, "MB", 90),
        ("unbasket --help", helping, "s", 0.5),
    ]


def main() -> None:
    """Build, install, use, and print the table."""
    table = Table("", "", "at most", "", title="Unbasket: a fresh installation")
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory() as folder, Progress(console=console, transient=True) as progress:
        for name, figure, unit, limit in measure(Path(folder), progress):
            verdict = "[green]yes[/]" if figure <= limit else "[red]no[/]"
            table.add_row(name, f"{figure:.3g} {unit}", f"{limit:g} {unit}", verdict)
    Console().print(table)


if __name__ == "__main__":
    main()
