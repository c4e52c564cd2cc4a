"""Work beside the requests, in a real process: it shares the engine, is counted, and ends after them."""

import json
import signal
import sys
from pathlib import Path

import pytest
from tests.service.process import Process, ending, until
from tests.service.serving import make_shop

import unbasket as ub

SCRIPT = """
import sys, threading
from contextlib import nullcontext
from pathlib import Path
from prometheus_client.core import CounterMetricFamily
from unbasket.errors import KafkaError
from unbasket.service.server import free_address, run
from unbasket.service.settings import Settings

class Reader:
    '''Learns a basket now and then; the last one after it was stopped, as one that finishes its batch.'''

    def __init__(self):
        self.stopping, self.count = threading.Event(), 0

    def run(self, rec):
        if "--fail" in sys.argv:
            raise KafkaError("no broker answers")
        while not self.stopping.wait(0.01):
            self.count += 1
            rec.learn("reader", ["milk"], basket=self.count)
        rec.learn("reader", ["milk"], basket=0)

    def stop(self):
        self.stopping.set()

    def collect(self):
        yield CounterMetricFamily("unbasket_stand_in_events", "Events", value=self.count)

bar = lambda text: nullcontext(lambda done, total: None)
settings = Settings(db=Path(sys.argv[1]))
run(settings, free_address("127.0.0.1", 0), bar=bar, ready=lambda *_: None, log=sys.stderr.buffer, beside=[Reader()])
"""


def start(db: Path, *options: str) -> Process:
    script = db.with_name("serve.py")
    script.write_text(SCRIPT)
    return Process([sys.executable, script, make_shop(db), *options], {}, db.with_name("service.log"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_shares_the_engine_and_ends_in_order(db: Path, number: signal.Signals) -> None:
    with ending(start(db)) as service:
        until(lambda: service.ask("GET", "/v1/users/reader")[0] == 200, service.process)
        until(lambda: b"unbasket_stand_in_events_total 0.0" not in service.ask("GET", "/metrics")[1])
        assert service.ask("DELETE", "/v1/users/ann")[0] == 200
        assert service.stop(number) == 0
    with ub.open(db) as rec:
        assert 0 in {basket.basket for basket in rec.history("reader")}
        assert rec.receipt_count == 1


def test_its_error_ends_the_service(db: Path) -> None:
    service = start(db, "--fail")
    assert service.process.wait(60) == 1
    log = service.log.read_text()
    assert "KafkaError: no broker answers" in log
    events = [json.loads(line)["event"] for line in log.splitlines() if line.startswith("{")]
    assert "a background task failed" in events
    assert events[-1] == "closed"
