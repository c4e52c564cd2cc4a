"""The versions and the machine that a result was made with."""

import os
import platform
from importlib.metadata import version


def environment() -> dict[str, str]:
    """Package and library versions, Python, and the number of cores."""
    packages = {name: version(name) for name in ("unbasket", "numpy", "polars")}
    return packages | {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": str(os.cpu_count()),
    }
