"""Settings for all tests: the project's own data, the longest files first, and a folder for each example."""

import os
from pathlib import Path

import pytest

os.environ.pop("UNBASKET_DATA", None)
collect_ignore = ["docs/conf.py"]  # it has no examples, and needs what only the site is built with


LONGEST = (
    "tests/store/test_forensics",
    "tests/service/web/test_web",
    "tests/test_example_notebook",
    "tests/service/test_server",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--wheels", type=Path, help="where the wheel that tests build stays when they have ended")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, to balance the workers."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


@pytest.fixture(autouse=True)
def folder_of_the_example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(request.node, pytest.DoctestItem):
        tmp_path: Path = request.getfixturevalue("tmp_path")
        monkeypatch.chdir(tmp_path)
