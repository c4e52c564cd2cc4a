"""What holds for every test: the project's own data, work for several processes, and a folder for each example."""

import os
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

os.environ.pop("UNBASKET_DATA", None)
collect_ignore = ["docs/conf.py"]  # it has no examples, and needs what only the site is built with


LONGEST = ("tests/spark/", "tests/deploy/test_install", "tests/store/test_forensics", "tests/service/test_operations")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest in one process, so that none is left with it when the others have ended."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """How several processes share the tests."""
    return ByFile(config, log)


class ByFile(LoadScopeScheduling):
    """A process runs a file at a time, for the sake of what is made once per file. Spark's files share a session."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, _ = nodeid.partition("::")
        return "tests/spark" if file.startswith("tests/spark/") else file


@pytest.fixture(autouse=True)
def folder_of_the_example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        tmp_path: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(tmp_path)
