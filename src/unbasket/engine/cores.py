"""The number of cores that this process may use: a container's share, not the machine's."""

import math
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


def usable_cores() -> int:
    """Return the cores of this process's affinity, or fewer if a control group (version 2) limits its time."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        allowed = os.cpu_count() or 1
    return max(1, math.ceil(min(allowed, _quota())))


def _quota() -> float:
    """Return the processors' worth of time that the control groups of this process allow."""
    try:
        own = next(line[3:] for line in _OWN_CGROUP.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return math.inf
    group = _CGROUPS / own.strip("/")
    return min(map(_quota_of, (group, *group.parents)))


def _quota_of(group: Path) -> float:
    try:
        time, period = (group / "cpu.max").read_text().split()
        return int(time) / int(period)
    except (OSError, ValueError):  # no file, or "max"
        return math.inf
