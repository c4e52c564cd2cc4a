"""The Compose file, the Kubernetes manifests and the unit agree with the image, the settings and the routes."""

import calendar
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy.recipes import DEPLOY, ROOT, Dockerfile, Unit, settings_example

import unbasket as ub
from unbasket.service.routes import ROUTES
from unbasket.service.server import CLOSING
from unbasket.service.settings import PREFIX, Settings

DOCKER, UNIT = Dockerfile(), Unit()
DEFAULTS = Settings(db=Path("shop.db"))
PORT = str(DEFAULTS.port)
LONGEST_END = DEFAULTS.grace + CLOSING
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
STATEFUL_SET, SERVICE, POLICY = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
CRON_JOB, BACKUPS, BACKUP_POLICY = yaml.safe_load_all((DEPLOY / "kubernetes-backup.yaml").read_text())
BACKUP_POD = CRON_JOB["spec"]["jobTemplate"]["spec"]["template"]
MONITOR = yaml.safe_load((DEPLOY / "kubernetes-monitoring.yaml").read_text())
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
    [documented] = re.findall(r"^```toml\n# /etc/unbasket.toml\n(.*?)^```", _operations(), re.M | re.DOTALL)
    assert tomllib.loads(settings_example()) == tomllib.loads(documented)
    assert "--config /etc/unbasket.toml" in UNIT.one("ExecStart")
    assert "install -m 0644 deploy/unbasket.toml /etc/unbasket.toml" in UNIT.text
    assert UNIT.text.index("keys add") < UNIT.text.index("systemctl enable"), "it does not start without a key"


def test_nothing_but_the_sources_of_the_image_is_sent_to_the_builder() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    assert {ROOT / line[1:] for line in lines if line.startswith("!")} == {*DOCKER.sources()}
    assert {"**/*.so", "**/__pycache__"} < {*lines}


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
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]  # one node, where the store's lock holds
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


def test_the_policies_let_in_only_who_is_named() -> None:
    assert POLICY["spec"]["podSelector"]["matchLabels"] == SERVICE["spec"]["selector"]
    [rule] = POLICY["spec"]["ingress"]
    assert rule["ports"] == [{"port": CONTAINER["ports"][0]["name"]}]
    assert all(source for source in rule["from"])  # an empty selector would let in every pod
    assert BACKUP_POLICY["spec"]["podSelector"]["matchLabels"] == BACKUP_POD["metadata"]["labels"]
    assert "ingress" not in BACKUP_POLICY["spec"]
    for policy in (POLICY, BACKUP_POLICY):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        assert "egress" not in policy["spec"]


def test_the_monitor_scrapes_the_service_as_the_job_of_the_alerts() -> None:
    assert MONITOR["spec"]["selector"]["matchLabels"].items() <= SERVICE["metadata"]["labels"].items()
    [endpoint] = MONITOR["spec"]["endpoints"]
    assert endpoint["port"] == SERVICE["spec"]["ports"][0]["name"]
    [route] = [route for route in ROUTES if route.path == endpoint["path"]]
    assert (route.method, "read" in route.roles) == ("GET", True)
    text = (DEPLOY / "kubernetes-monitoring.yaml").read_text()
    credentials = endpoint["authorization"]["credentials"]
    assert f"secret generic {credentials['name']} --from-literal={credentials['key']}=" in text
    assert f'job="{SERVICE["metadata"]["name"]}"' in (DEPLOY / "alerts.yaml").read_text()  # the default of `jobLabel`


def test_the_backup_runs_as_the_service_and_beside_it() -> None:
    spec = BACKUP_POD["spec"]
    assert spec["securityContext"] == POD["securityContext"]
    [container] = spec["containers"]
    assert container["image"] == CONTAINER["image"]
    [near] = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert near["labelSelector"]["matchLabels"] == SERVICE["spec"]["selector"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    claims = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in spec["volumes"]}
    [shop] = STATEFUL_SET["spec"]["volumeClaimTemplates"]
    assert (claims["shop"], mounts["shop"]) == (
        f"{shop['metadata']['name']}-{STATEFUL_SET['metadata']['name']}-0",
        DOCKER.one("VOLUME"),
    )
    assert claims["backups"] == BACKUPS["metadata"]["name"]


def test_the_backup_of_a_week_ago_is_replaced(tmp_path: Path) -> None:
    [container] = BACKUP_POD["spec"]["containers"]
    [script] = container["args"]
    script = re.sub(r"(?<!\w)/(data|backups)/", rf"{tmp_path}/\1/", script)
    for folder in ("data", "backups"):
        (tmp_path / folder).mkdir()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with ub.open(tmp_path / "data" / "shop.db") as service:
        for basket in range(2):
            service.learn("ann", ["tea"], basket=basket)
            subprocess.run([*container["command"], script], env=environment, check=True, capture_output=True)
    [backup] = (tmp_path / "backups").iterdir()
    assert backup.stem in calendar.day_name
    with ub.open(backup, read_only=True) as rec:
        assert len(rec.history("ann")) == 2


def _operations() -> str:
    return (ROOT / "docs" / "operations.md").read_text()


def _bytes(resources: dict[str, Any]) -> int:
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi)", resources["memory"]).groups()  # type: ignore[union-attr]
    return int(number) * {"Mi": 2**20, "Gi": 2**30}[unit]
