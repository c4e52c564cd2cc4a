"""The project's files agree with the code: hosted checks, hooks, the citation, the changelog."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs() -> dict[str, dict[str, Any]]:
    return {name: job for path in WORKFLOWS for name, job in read_yaml(path)["jobs"].items()}


def steps() -> list[dict[str, Any]]:
    return [step for job in jobs().values() for step in job["steps"]]


def test_hosted_checks_call_targets_that_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.MULTILINE))
    called = {word for step in steps() for word in re.findall(r"\bmake ([\w-]+)", step.get("run", ""))}
    assert {"test", "test-slow", "docs"} <= called <= targets


def test_hosted_checks_run_every_version_of_python_that_is_claimed() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert jobs()["test"]["strategy"]["matrix"]["python"] == claimed
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert jobs()["test"]["container"]["image"].startswith("python:${{ matrix.python }}-")


def test_wheels_are_built_for_every_version_of_python_that_is_claimed() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    hosted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["cibuildwheel"]["build"]
    assert hosted == [f"cp{version.replace('.', '')}-*" for version in claimed]
    [made] = re.findall(r"^VERSIONS := (.+)$", MAKEFILE, re.MULTILINE)
    assert made.split() == claimed
    assert any("cibuildwheel" in step.get("uses", "") for step in jobs()["wheels"]["steps"])


def test_hosted_checks_are_bounded_and_their_actions_pinned() -> None:
    for path in WORKFLOWS:
        assert read_yaml(path)["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] for job in jobs().values())
    uses = [step["uses"] for step in steps() if "uses" in step]
    assert uses
    assert [use for use in uses if not re.fullmatch(r"actions/[\w-]+@v\d+|pypa/cibuildwheel@v[\d.]+", use)] == []
    assert all(("uses" in step) != ("run" in step) for step in steps())


def test_hooks_are_the_lines_of_make_lint() -> None:
    [repository] = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = [hook["entry"].removeprefix(".venv/bin/") for hook in repository["hooks"]]
    [recipe] = re.findall(r"^lint: .*\n((?:\t.+\n)+)", MAKEFILE, re.MULTILINE)
    assert [line.removesuffix(" .") for line in re.findall(r"^\t\$\(BIN\)/(.+)$", recipe, re.MULTILINE)] == [
        hook.removesuffix(" --force-exclude") for hook in hooks
    ]


def test_the_citation_is_of_this_version() -> None:
    citation = read_yaml(ROOT / "CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"]
    assert citation["authors"] == [{"name": "The Unbasket contributors"}]
    assert (citation["title"].lower(), citation["version"], citation["license"]) == (
        PROJECT["name"],
        PROJECT["version"],
        PROJECT["license"],
    )


@pytest.mark.parametrize("field", ["type", "title", "authors", "year"])
def test_the_citation_refers_to_papers(field: str) -> None:
    references = read_yaml(ROOT / "CITATION.cff")["references"]
    assert "Efficiently Maintaining Next Basket Recommendations" in references[0]["title"]
    assert all(reference[field] for reference in references)


def test_the_changelog_has_a_section_for_the_next_release() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])
    parts = re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(parts) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
