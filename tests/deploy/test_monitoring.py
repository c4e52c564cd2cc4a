"""The dashboard and the alerts use metrics that a service exposes."""

import json
import re
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.deploy.recipes import DEPLOY, ROOT
from tests.service.serving import make_shop, serving

from unbasket.service.routes import ROUTES

Labels = dict[str, set[str]]

DASHBOARD = json.loads((DEPLOY / "grafana.json").read_text())
[ALERTS] = [group["rules"] for group in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]]
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"]}
ADDED = {"job", "instance"}  # labels that Prometheus adds


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Labels]:
    """Return the metrics of a service after some requests, with their labels and values."""
    with serving(make_shop(tmp_path_factory.mktemp("shop") / "shop.db")) as service:
        service("GET", "/v1/users/ann/recommendations")
        service("DELETE", "/v1/users/ann")
        service("POST", "/v1/events", json=[{"event": "forget", "user": "bob"}])
        text = service.client.get("/metrics").text
    found: dict[str, Labels] = {"up": {}}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for name, value in sample.labels.items():
                labels.setdefault(name, set()).add(value)
    return found


def selectors(expression: str) -> list[Any]:
    """Return the metric selectors of a PromQL expression. Raises if it is invalid."""
    found: list[Any] = []
    plain = expression.replace("$__rate_interval", "1m").replace("$instance", ".*")
    promql.walk(promql.parse(plain), pre_visit=found.append)
    return [node for node in found if isinstance(node, promql.VectorSelector)]


EXPRESSIONS = {
    **{f"alert {rule['alert']}": rule["expr"] for rule in ALERTS},
    **{f"panel {title} {t['refId']}": t["expr"] for title, panel in PANELS.items() for t in panel["targets"]},
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_every_metric_is_exposed(name: str, exposed: dict[str, Labels]) -> None:
    used = selectors(EXPRESSIONS[name])
    assert used
    for selector in used:
        labels = exposed[selector.name]
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels.keys() | ADDED, selector
            if matcher.op == promql.MatchOp.Equal and matcher.name in ("route", "method"):
                assert matcher.value in labels[matcher.name]


def test_the_labels_of_sums_exist(exposed: dict[str, Labels]) -> None:
    for name, expression in EXPRESSIONS.items():
        known = set().union(*(exposed[selector.name] for selector in selectors(expression))) | ADDED
        for names in re.findall(r"\bby \(([\w, ]+)\)", expression):
            assert set(names.split(", ")) <= known, name


def test_the_alert_on_failing_forgets_watches_every_route_that_forgets() -> None:
    [expression] = [rule["expr"] for rule in ALERTS if rule["alert"] == "UnbasketForgettingFails"]
    watched = [{m.name: m.value for m in selector.matchers.matchers} for selector in selectors(expression)]
    forgetting = [route for route in ROUTES if route.method == "DELETE"] + [
        route
        for route in ROUTES
        if route.method == "POST" and route.path.endswith(("/events", "/retention", "/rename"))
    ]
    assert len(forgetting) >= 8
    for route in forgetting:
        assert any(
            each["method"] == route.method
            and re.fullmatch(each.get("route", ".*"), route.path)
            and re.fullmatch(each["status"], "507")
            for each in watched
        ), route.path


def test_alerts_are_complete() -> None:
    for rule in ALERTS:
        assert re.fullmatch(r"Unbasket[A-Z]\w+", rule["alert"])
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert "$labels.instance" in rule["annotations"]["summary"]
        assert rule["annotations"]["description"].endswith(".")
        assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS.values():
        position = panel["gridPos"]
        assert position["x"] + position["w"] <= 24
        cells = {(x + position["x"], y + position["y"]) for x in range(position["w"]) for y in range(position["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in PANELS.values()}) == len(DASHBOARD["panels"])


def test_every_metric_is_documented(exposed: dict[str, Labels]) -> None:
    documented = (ROOT / "docs" / "operations.md").read_text()
    for name in exposed:
        family = re.sub(r"_(bucket|count|sum)$", "", name)
        assert family in documented or name.startswith(("process_", "up")), name


def test_the_documentation_and_the_alerts_use_one_job() -> None:
    text = Path(ROOT / "docs" / "operations.md").read_text()
    [example] = re.findall(r"^```yaml\n(scrape_configs:.*?)^```", text, re.MULTILINE | re.DOTALL)
    [job] = yaml.safe_load(example)["scrape_configs"]
    assert set(re.findall(r'job="(\w+)"', " ".join(EXPRESSIONS.values()))) == {job["job_name"]}
    assert job.get("metrics_path", "/metrics") == "/metrics"
