"""The number of usable cores: affinity, and the quotas of control groups."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unbasket.engine import cores
from unbasket.engine.cores import usable_cores


def test_affinity_limits_the_cores() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from unbasket.engine import workspaces"
    code += "; print(workspaces.usable_cores(), workspaces.THREAD_POOL.size)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["1", "0"]


@pytest.mark.parametrize(
    ("shop", "service", "expected"),
    [
        ("max 100000", "max 100000", 8),
        ("max 100000", "250000 100000", 3),
        ("150000 100000", "max 100000", 2),
        ("50000 100000", "400000 100000", 1),
        ("garbage", "100000 50000", 2),
    ],
)
def test_the_smallest_quota_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shop: str, service: str, expected: int
) -> None:
    group = tmp_path / "groups" / "shop.slice" / "unbasket.service"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(service + "\n")
    (group.parent / "cpu.max").write_text(shop + "\n")
    (tmp_path / "own").write_text("1:name=systemd:/other\n0::/shop.slice/unbasket.service\n")
    monkeypatch.setattr(cores, "_CGROUPS", tmp_path / "groups")
    monkeypatch.setattr(cores, "_OWN_CGROUP", tmp_path / "own")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert usable_cores() == expected


def test_without_control_groups_the_affinity_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "_OWN_CGROUP", tmp_path / "none")
    assert usable_cores() == len(os.sched_getaffinity(0))
    (tmp_path / "none").write_text("7:cpu:/version 1\n")
    assert usable_cores() == len(os.sched_getaffinity(0))
