"""The Compose file, the Kubernetes manifests and the unit agree with the image, the settings and the routes."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.recipes import DEPLOY, ROOT, Dockerfile, Unit, settings_example

from unbasket.service.routes import ROUTES
from unbasket.service.server import CLOSING
from unbasket.service.settings import PREFIX, Settings

DOCKER, UNIT = Dockerfile(), Unit()
DEFAULTS = Settings(db=Path("shop.db"))
PORT = str(DEFAULTS.port)
LONGEST_END = DEFAULTS.grace + CLOSING
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
STATEFUL_SET, SERVICE = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
POD = STATEFUL_SET["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]


def assert_settings(environment: dict[str, str]) -> None:
    """Check that variables are settings with valid values."""
    ours = {name: value for name, value in environment.items() if name.startswith(PREFIX)}
    assert {name.removeprefix(PREFIX).lower() for name in ours} <= set(Settings.__struct_fields__)
    Settings.gathered({"db": "shop.db"}, ours)


# The image ------------------------------------------------------------------------------------------------------


def test_the_image() -> None:
    assert_settings(DOCKER.environment)
    assert DOCKER.environment["UNBASKET_DB"].startswith(DOCKER.one("VOLUME") + "/")
    assert DOCKER.one("EXPOSE") == PORT
    assert f"http://127.0.0.1:{PORT}/healthz" in DOCKER.health_command[-1]
    assert DOCKER.one("USER") != "root"
    for source in DOCKER.sources():
        assert source.exists()


def test_the_unit() -> None:
    assert int(UNIT.one("TimeoutStopSec")) > LONGEST_END
    assert UNIT.one("User") == UNIT.one("StateDirectory") == "unbasket"
    assert "useradd --system --home-dir /var/lib/unbasket unbasket" in UNIT.text
    assert f"{DOCKER.extras}" in UNIT.text
    assert_settings({PREFIX + line.split(" = ")[0].upper(): "1" for line in settings_example().splitlines()})


# Compose --------------------------------------------------------------------------------------------------------


def test_compose_runs_the_image_behind_a_proxy() -> None:
    ours, proxy = COMPOSE["services"]["unbasket"], COMPOSE["services"]["caddy"]
    assert (DEPLOY / ours["build"]["context"] / ours["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert_settings(ours["environment"])
    assert "ports" not in ours  # plain HTTP stays inside
    assert ours["expose"] == [PORT]
    assert ours["volumes"] == [f"shop:{DOCKER.one('VOLUME')}"]
    assert int(ours["stop_grace_period"].removesuffix("s")) > LONGEST_END
    assert proxy["ports"] == ["80:80", "443:443"]
    assert {"shop", "certificates"} == set(COMPOSE["volumes"])
    assert (DEPLOY / proxy["volumes"][0].partition(":")[0]).is_file()


def test_caddy_leads_to_the_service() -> None:
    text = (DEPLOY / "Caddyfile").read_text()
    assert re.findall(r"reverse_proxy (\S+)", text) == [f"unbasket:{PORT}"]
    assert set(re.findall(r"\{\$(\w+)\}", text)) == set(COMPOSE["services"]["caddy"]["environment"])
    assert all(any(route.path == path for route in ROUTES) for path in re.findall(r"^\s*@\w+ path (\S+)", text, re.M))


# Kubernetes -----------------------------------------------------------------------------------------------------


def test_only_one_process_writes() -> None:
    assert STATEFUL_SET["kind"] == "StatefulSet"
    assert STATEFUL_SET["spec"]["replicas"] == 1
    [claim] = STATEFUL_SET["spec"]["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == DOCKER.one("VOLUME")
    assert POD["terminationGracePeriodSeconds"] > LONGEST_END


def test_labels_and_ports_lead_to_the_pod() -> None:
    labels = STATEFUL_SET["spec"]["template"]["metadata"]["labels"]
    assert STATEFUL_SET["spec"]["selector"]["matchLabels"] == SERVICE["spec"]["selector"] == labels
    assert STATEFUL_SET["spec"]["serviceName"] == SERVICE["metadata"]["name"]
    [port] = CONTAINER["ports"]
    assert str(port["containerPort"]) == PORT
    assert SERVICE["spec"]["ports"][0]["targetPort"] == port["name"]


@pytest.mark.parametrize(
    ("probe", "path"), [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")]
)
def test_probes_use_public_routes(probe: str, path: str) -> None:
    used = CONTAINER[probe]["httpGet"]
    assert used == {"path": path, "port": CONTAINER["ports"][0]["name"]}
    [route] = [route for route in ROUTES if route.path == path]
    assert (route.method, route.roles) == ("GET", frozenset())


def test_the_pod_reads_its_keys_from_the_secret() -> None:
    environment = {variable["name"]: variable["value"] for variable in CONTAINER["env"]}
    assert_settings(environment)
    text = (DEPLOY / "kubernetes.yaml").read_text()
    [volume] = [volume for volume in POD["volumes"] if "secret" in volume]
    [(secret, file)] = re.findall(r"create secret generic (\S+) --from-file=(\S+)", text)
    assert volume["secret"]["secretName"] == secret
    [mount] = [mount["mountPath"] for mount in CONTAINER["volumeMounts"] if mount["name"] == volume["name"]]
    assert environment["UNBASKET_ACCESS"] == f"{mount}/{file}"


def test_the_pod_has_the_user_of_the_image() -> None:
    [created] = [run for run in DOCKER.all("RUN") if "useradd" in run]
    context = POD["securityContext"]
    assert context["runAsNonRoot"]
    assert [f"--uid {context['runAsUser']}" in created, f"--gid {context['runAsGroup']}" in created] == [True, True]
    assert context["fsGroup"] == context["runAsGroup"]


def test_the_pod_has_enough_memory() -> None:
    """The number of purchases is in a comment, and the memory per purchase in a table by `benchmarks/memory.py`."""
    text = (DEPLOY / "kubernetes.yaml").read_text()
    [millions] = re.findall(r"memory: \S+  # (\d+) million purchases", text)
    [base, per_purchase] = re.findall(r"^\| the service, at its peak \| (\d+) MB \| (\d+) \|", _operations(), re.M)[0]
    needed = int(base) * 10**6 + int(per_purchase) * int(millions) * 10**6
    assert needed < _bytes(CONTAINER["resources"]["requests"]) < 1.5 * needed
    assert CONTAINER["resources"]["limits"]["memory"] == CONTAINER["resources"]["requests"]["memory"]


def _operations() -> str:
    return (ROOT / "docs" / "operations.md").read_text()


def _bytes(resources: dict[str, Any]) -> int:
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", resources["memory"]).groups()  # type: ignore[union-attr]
    return int(number) * {"Mi": 2**20, "Gi": 2**30}[unit]
