"""Metrics and stats, which never contain personal data; neither do logs."""

import json
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.cli.running import files_with
from tests.service.process import Service as Process
from tests.service.process import running
from tests.service.serving import Service

BASKET_PATH = "/v1/users/{}/baskets/{}"


USER, BASKET, ITEM = "markeduser7f3a", "markedbasket91c2", "markeditem44de"


OTHERS = ("markedquery05ab", "markedtoken6e1d", "markedpath8c70", "markedbody2b9f")


def test_metrics_and_logs_have_no_personal_data(db: Path) -> None:
    with running(db) as service:
        _send_markers(service)
        status, text = service.ask("GET", "/metrics")
        stats = json.loads(service.ask("GET", "/v1/stats")[1])
        assert service.stop() == 0
    assert status == 200
    _check_metrics(text.decode())
    assert (stats["users"], stats["baskets"], stats["learned"], stats["forgotten"]) == (1, 1, 3, 1)
    route = stats["calls"]["PUT /v1/users/{user}/baskets/{basket}"]
    assert route["count"] >= 3
    assert stats["calls"]["GET static file"]["count"] == 1
    assert 0 < route["p50"] <= route["p90"] <= route["p99"] < 60
    for marker in (USER, BASKET, ITEM, *OTHERS):
        assert marker not in text.decode()
        assert "./service.log" not in files_with(marker, db.parent)
    assert files_with(USER, db.parent)  # grep does find stored ids
    logged = [line for line in service.lines() if line["event"] == "response"]
    assert {"method", "route", "status", "ms", "request", "time", "level"} <= logged[0].keys()
    assert {line["route"] for line in logged} >= {"/v1/users/{user}/baskets/{basket}", "unknown"}


def _send_markers(service: Process) -> None:
    """Send valid and invalid requests full of markers, and one for the page."""
    assert service.ask("GET", "/")[0] == 200
    path = BASKET_PATH.format(USER, BASKET)
    for items in (["tea", ITEM], ["tea", ITEM, "milk"], ["tea", ITEM, "milk"]):
        assert service.ask("PUT", path, {"items": items})[0] == 200
    assert service.ask("DELETE", f"{path}/items/milk")[0] == 200
    assert service.ask("GET", f"/v1/users/{USER}/recommendations?n=3&exclude={ITEM}")[0] == 200
    assert service.ask("GET", f"/v1/users/{USER}/explanations/{ITEM}")[0] == 200
    assert service.ask("GET", f"/v1/users/{USER}/recommendations?{OTHERS[0]}=1")[0] == 400
    assert service.ask("GET", f"/v1/users/{USER}", Authorization=f"Bearer {OTHERS[1]}")[0] == 401
    assert service.ask("GET", f"/v1/{OTHERS[2]}/{USER}")[0] == 404
    assert service.ask("PUT", path, {OTHERS[3]: 1})[0] == 400
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(f"{USER} {OTHERS[2]}\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 400")


def _check_metrics(text: str) -> None:
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    put = ("route", "/v1/users/{user}/baskets/{basket}"), ("method", "PUT")
    assert samples["unbasket_http_requests_total", *sorted([*put, ("status", "200")])] == 3
    assert samples["unbasket_http_requests_total", *sorted([*put, ("status", "400")])] == 1
    assert samples["unbasket_http_request_duration_seconds_bucket", *sorted([*put, ("le", "+Inf")])] == 4
    assert samples["unbasket_http_request_duration_seconds_bucket", *sorted([*put, ("le", "5e-05")])] <= 4
    assert samples["unbasket_http_request_duration_seconds_sum", *sorted(put)] > 0
    for result in ("added", "replaced", "unchanged", "forgotten"):
        assert samples["unbasket_events_total", ("result", result)] == 1
    assert samples[("unbasket_removed_purchases_total",)] == 1
    sizes = [samples[(f"unbasket_{name}",)] for name in ("users", "baskets", "items", "ready")]
    assert sizes == [1, 1, 2, 1]
    assert samples[("process_resident_memory_bytes",)] > 10_000_000
    assert "unbasket_build_info" in {name for name, *_ in samples}


def test_stats_fall_to_zero_with_the_load(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.5
    monkeypatch.setattr("unbasket.service.metrics.time", SimpleNamespace(monotonic=lambda: now))
    for _ in range(6):
        service("GET", "/v1/users/ann/recommendations")
    service("PUT", "/v1/users/ann/baskets/9", json={"items": ["milk"]})
    assert _rates(service) == [(0, 0)] * 30  # the current bucket is left out
    now += 2
    assert _rates(service) == [(0, 0)] * 29 + [(3, 0.5)]
    now += 2
    assert _rates(service) == [(0, 0)] * 28 + [(3, 0.5), (0, 0)]
    newest = service("GET", "/v1/stats")["buckets"]
    assert (newest[-1]["p50"], newest[-1]["p99"]) == (None, None)
    assert 0 < newest[-2]["p50"] <= newest[-2]["p90"] <= newest[-2]["p99"]
    now += 56
    service("GET", "/v1/users/ann/recommendations")  # in a slot that is reused
    assert _rates(service) == [(3, 0.5)] + [(0, 0)] * 29
    now += 2
    assert _rates(service) == [(0, 0)] * 29 + [(0.5, 0)]


def _rates(service: Service) -> list[tuple[float, float]]:
    buckets = service("GET", "/v1/stats")["buckets"]
    return [(bucket["recommendations_per_second"], bucket["events_per_second"]) for bucket in buckets]
