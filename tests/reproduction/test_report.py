"""The whole report with small settings on small shops: files, HTML page and LaTeX, which one run makes."""

import re
from pathlib import Path

import polars as pl
import pytest
from tests.reproduction.test_experiments import Recorder
from tests.service.browser import DESKTOP, PHONE, chromium

from unbasket.reproduction import EXPERIMENTS, Settings, reproduce

SMALL = Settings(
    user_shares=(0.001, 0.2),
    draws=2,
    basket_shares=(0.5,),
    stream_baskets=12,
    drift_baskets=12,
    latency_events=3,
)


@pytest.fixture(scope="module")
def folder(small_shops: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a report of all experiments."""
    out = tmp_path_factory.mktemp("report")
    recorder = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNBASKET_DATA", str(small_shops))
        reproduce(out, SMALL, recorder)
    assert len(recorder.tasks) == sum(len(experiment.datasets) for experiment in EXPERIMENTS.values())
    return out


@pytest.fixture(scope="module")
def text(folder: Path) -> str:
    return (folder / "report.html").read_text()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_its_files(folder: Path, text: str, name: str) -> None:
    assert pl.read_csv(folder / f"{name}.csv").height > 0
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / f"{name}.svg").read_text()
    assert f'<h2 id="{name}">{EXPERIMENTS[name].title}</h2>' in text
    assert f'<a href="#{name}">{EXPERIMENTS[name].title}</a>' in text


def test_the_page_needs_no_other_file(folder: Path, text: str) -> None:
    assert text.count('src="data:image/svg+xml;base64,') == len(EXPERIMENTS)
    assert not re.search(r"https?:|<link|<script|@import|url\(", text)
    assert {source.split(":")[0] for source in re.findall(r'src="([^"]+)', text)} == {"data"}
    links = set(re.findall(r'href="([^"]+)', text))
    anchors = {link[1:] for link in links if link.startswith("#")}
    assert anchors == set(re.findall(r'id="([^"]+)', text))
    assert {link for link in links if not link.startswith("#")} == {
        path.name for path in folder.iterdir() if path.suffix in (".csv", ".tex", ".svg", ".png")
    }


def test_the_verdict_comes_first_and_counts_the_checks(text: str) -> None:
    findings = re.findall(r'<li class="(holds|fails|found)">', text.split("<nav>")[0])
    assert len(findings) > len(EXPERIMENTS)
    checks = findings.count("holds") + findings.count("fails")
    verdict = f"Verdict: {findings.count('holds')} of {checks} checks hold, on 3 of the paper's 3 datasets</h2><ul"
    assert verdict in text
    assert 'class="verdict fails"' in text  # small shops do not have the paper's figures
    assert "DIFFERENT" not in text


def test_every_table_has_its_provenance(text: str) -> None:
    after_tables = re.findall(r'</table></div><p class="provenance">([^<]+)', text)
    assert len(after_tables) == text.count("<table>")
    run = r"unbasket [\d.]+, full run, seed 0: \S+ \(m = \d+, r_b = .*alpha = 0\.\d+; \d+\xa0s\)"
    for provenance in after_tables:
        assert re.search(run, provenance)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_latex_has_the_tables_of_the_page(folder: Path, text: str, name: str) -> None:
    latex = (folder / f"{name}.tex").read_text()
    chapter = re.split(r'<h2 id="', text.split(f'<h2 id="{name}">')[1])[0]
    bodies = re.findall(r"\\midrule\n(.*?)\\bottomrule", latex, re.DOTALL)
    assert [len(body.splitlines()) for body in bodies] == [
        table.count("<tr>") for table in re.findall(r"<tbody>(.*?)</tbody>", chapter)
    ]
    for columns, body in zip(re.findall(r"\\begin{tabular}{(\w+)}", latex), bodies, strict=True):
        for line in body.splitlines():
            assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1
            assert line.endswith(r" \\")
            assert not re.search(r"(?<!\\)[%#_]", line)


def test_no_p_is_zero(text: str) -> None:
    assert "0.000<" not in text


def test_nothing_is_wider_than_the_screen(folder: Path) -> None:
    """On a desktop every table fits; on a phone wide tables scroll in their boxes."""
    address = (folder / "report.html").as_uri()
    with chromium() as browser:
        for screen in (DESKTOP, PHONE):
            page = browser.new_page(viewport=screen)
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth") == screen["width"]
            scrolling = page.eval_on_selector_all(
                ".box:has(table)", "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
            )
            assert bool(scrolling) == (screen is PHONE)


def test_the_page_follows_the_color_scheme(folder: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(color_scheme="dark")
        page.goto((folder / "report.html").as_uri())
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 28)"
        page.emulate_media(color_scheme="light")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
