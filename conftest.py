"""What holds for every test: the project's own data, work for several processes, and a folder for each example."""

import os
from pathlib import Path

import pytest

os.environ.pop("UNBASKET_DATA", None)

SPARK = Path(__file__).parent / "tests" / "spark"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--numprocesses`, a process runs a file at a time, for the sake of fixtures that are made once per file.

    Spark's files go to one process, since they share a session. It begins with them: together they take longest.
    """
    items.sort(key=lambda item: SPARK not in item.path.parents)
    for item in items:
        group = SPARK if SPARK in item.path.parents else item.path
        item.add_marker(pytest.mark.xdist_group(str(group)))


@pytest.fixture(autouse=True)
def folder_of_the_example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        tmp_path: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(tmp_path)
