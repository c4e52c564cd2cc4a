"""The server with a constant response, beside which the service is measured."""

import sys
import time
from pathlib import Path
from urllib.request import urlopen

from benchmarks import service


def test_the_constant_server_stays_up(tmp_path: Path) -> None:
    command = [sys.executable, service.__file__, "--constant", "300"]
    with service.started(command, tmp_path / "log") as (address, _):
        for _ in range(2):
            time.sleep(0.3)
            assert len(urlopen(address).read()) == 300
