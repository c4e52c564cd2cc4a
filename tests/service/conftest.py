"""The database path and the service that most tests use; a module may define its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.serving import Service, make_shop, serving


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def service(db: Path) -> Iterator[Service]:
    with serving(make_shop(db)) as running:
        yield running
