"""The package, installed as in the Dockerfile without the source tree, runs the commands of the recipes."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.deploy.recipes import ROOT, Dockerfile, FakeRoot, Unit, settings_example
from tests.service.process import Process, ending

DOCKER, UNIT = Dockerfile(), Unit()
SOURCES = {".css", ".h", ".html", ".js", ".pxd", ".py", ".pyi", ".pyx", ".svg", ".typed"}
PAGE = ROOT / "src" / "unbasket" / "service" / "web"


@pytest.fixture(scope="module")
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the package from the files that the Dockerfile copies."""
    source = tmp_path_factory.mktemp("source")
    for part in DOCKER.sources():
        _copy(part, source)
    folder: Path = request.config.getoption("--wheels") or tmp_path_factory.mktemp("wheels")
    _build("--wheel", "--outdir", folder.resolve(), source)
    [wheel] = folder.resolve().glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def root(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> FakeRoot:
    """Create the folders of a container and of a machine with systemd, with the package in /opt/unbasket."""
    root = FakeRoot(tmp_path_factory.mktemp("machine"))
    for folder in ("data", "etc", "opt", "var/lib/unbasket"):
        root.path(folder).mkdir(parents=True)
    opt = root.path("opt/unbasket")
    _python("-m", "venv", "--without-pip", opt)
    _python("-m", "uv", "pip", "install", "--python", opt / "bin" / "python", f"{wheel}{DOCKER.extras}")
    for preparation in DOCKER.preparations:
        _run(root, preparation, DOCKER.environment)
    return root


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(
            source, target / source.name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "built", "*.egg-info")
        )
    else:
        shutil.copy(source, target)


def _build(*arguments: object) -> None:
    _python("-m", "build", "--installer", "uv", *arguments)


def _python(*arguments: object) -> None:
    """Run this Python without the source tree. Builds are debug builds, which compile faster."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["UNBASKET_BUILD"] = "debug"
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _run(root: FakeRoot, command: Sequence[str], environment: dict[str, str], code: int = 0) -> str:
    """Run a command of a recipe, and return its output, or its errors if it must fail."""
    done = subprocess.run(
        [root.rebased(part) for part in _found(root, command)],
        env=root.environment(environment),
        cwd=root.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def _found(root: FakeRoot, command: Sequence[str]) -> list[str]:
    """Resolve the program of a command by the recipe's PATH."""
    path = root.environment(DOCKER.environment)["PATH"]
    return [shutil.which(root.rebased(command[0]), path=path) or command[0], *command[1:]]


# Contents --------------------------------------------------------------------------------------------------


def test_the_wheel_has_the_needed_files_and_no_others(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"unbasket"}
    assert {f"unbasket/service/web/{file.relative_to(PAGE)}" for file in PAGE.rglob("*") if file.is_file()} <= names
    assert not [name for name in names if "/data/" in name or name.endswith((".parquet", ".csv", ".zip"))]
    assert "unbasket/py.typed" in names
    assert not [name for name in names if "tests/" in name or "test_" in name or name.endswith((".pyc", ".c"))]


def test_the_source_distribution_has_all_sources(tmp_path: Path) -> None:
    _build("--sdist", "--outdir", tmp_path, ROOT)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for source in DOCKER.sources():
        files = [source] if source.is_file() else [file for file in source.rglob("*") if file.suffix in SOURCES]
        assert {str(file.relative_to(ROOT)) for file in files} <= names


def test_no_data_of_others_is_installed(root: FakeRoot) -> None:
    found = json.loads(_run(root, ["unbasket", "datasets", "--json"], DOCKER.environment))
    assert [dataset["place"] for dataset in found] == [None] * 5
    assert "unbasket datasets prepare tafeng" in _run(root, ["unbasket", "evaluate", "tafeng"], {}, code=2)


# Commands ---------------------------------------------------------------------------------------------------


def test_the_container(root: FakeRoot) -> None:
    free = DOCKER.environment | {"UNBASKET_PORT": "0"}
    assert "without keys" in _run(root, DOCKER.command, free, code=2)
    key = _run(root, DOCKER.keys_command, DOCKER.environment).strip()
    command = _found(root, DOCKER.command)
    with ending(Process(command, root.environment(free), root.path("container.log"))) as service:
        assert service.lines()[0]["address"].startswith("http://0.0.0.0:")
        health = [part.replace(":8000/", f":{service.port}/") for part in DOCKER.health_command]
        _run(root, health, DOCKER.environment)
        _use(service, key)
        assert service.stop(signal.SIGTERM) == 0
    assert root.path("data/shop.db").exists()


def test_the_unit(root: FakeRoot) -> None:
    root.path("etc/unbasket.toml").write_text(root.rebased(settings_example()) + "port = 0\n")
    key = _run(root, shlex.split(UNIT.keys_command), {}).strip()
    command = shlex.split(root.rebased(UNIT.one("ExecStart")))
    with ending(Process(command, root.environment(UNIT.environment), root.path("unit.log"))) as service:
        _use(service, key)
        reload = UNIT.one("ExecReload").replace("$MAINPID", str(service.process.pid))
        subprocess.run(shlex.split(reload), check=True)
        assert service.wait_for("settings reloaded")["changed"] == {}
        assert service.stop(signal.SIGTERM) == 0
    assert root.path("var/lib/unbasket/shop.db").exists()


def _use(service: Process, key: str) -> None:
    """Learn, recommend and forget."""
    headers = {"Authorization": f"Bearer {key}"}
    assert service.ask("GET", "/readyz")[0] == 200
    assert service.ask("PUT", "/v1/users/ann/baskets/1", {"items": ["tea", "milk"]})[0] == 401
    assert service.ask("PUT", "/v1/users/ann/baskets/1", {"items": ["tea", "milk"]}, **headers)[0] == 200
    status, body = service.ask("GET", "/v1/users/ann/recommendations", **headers)
    assert (status, {found["item"] for found in json.loads(body)["recommendations"]}) == (200, {"tea", "milk"})
    status, body = service.ask("DELETE", "/v1/users/ann", **headers)
    assert (status, json.loads(body)["receipt"]["verified"]) == (200, True)
    assert service.ask("GET", "/v1/users/ann", **headers)[0] == 404
    assert b"<!doctype html>" in service.ask("GET", "/")[1].lower()
