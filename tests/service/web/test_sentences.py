"""Every sentence of the page about what is held, erased or proven is in docs/page.md, with tests that show it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WEB = ROOT / "src" / "unbasket" / "service" / "web"
TEXT = (ROOT / "docs" / "page.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| “(.+)” \| (.+) \|$", TEXT, re.MULTILINE)

_CLAIM = re.compile(
    r"\b(eras\w+|forgotten|forgets|holds?|held|verified|genuine|signed|stor(?:ed|es)|proves?|remain|taken out|valid"
    r"|brought back|changed yet)\b",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"'((?:[^'\\\n]|\\.)*)'|`([^`]*)`|\"([^\"\n]*)\"|>([^<>{}]*)</?\w")
_COMMENT = re.compile(r"^\s*(//|/?\*).*$|\s//\s.*$", re.MULTILINE)
_LABELS = {
    "What Unbasket’s database holds about customer …",
    "To be forgotten:",
    "What each rule forgets",
    "Signed with",
}


def texts(source: str) -> list[str]:
    """Return the texts of a script or a page, with … for values; texts that are added up are one."""
    plain = _COMMENT.sub("", source)
    found: list[str] = []
    end = 0
    for literal in _LITERAL.finditer(plain):
        value = next(group for group in literal.groups() if group is not None)
        text = re.sub(r"\$\{(?:[^{}]|\{[^{}]*\})*\}", "…", value).replace("\\n", "\n")
        if found and re.fullmatch(r"\s*\+\s*", plain[end : literal.start()]):
            found[-1] += text
        else:
            found.append(text)
        end = literal.end()
    return found


def claims() -> list[str]:
    """Return the sentences that claim something about data: more than two words, and no example of rules."""
    files = [file for file in [*WEB.rglob("*.js"), WEB / "index.html"] if file.name not in ("docs.js", "signin.js")]
    everything = [text for file in sorted(files) for text in texts(file.read_text(encoding="utf-8"))]
    sentences = [text.strip() for text in everything if text.count(" ") > 1 and "[[rule]]" not in text]
    return [text for text in sentences if _CLAIM.search(text) and text not in _LABELS]


def test_claims_are_found() -> None:
    script = (
        "// holds a comment\nshow('It is ' +\n  `erased from ${where(a)} at once`, 'No such word', \"is genuine\");"
    )
    assert texts(script) == ["It is erased from … at once", "No such word", "is genuine"]
    assert len(claims()) > 25


@pytest.mark.parametrize("claim", claims())
def test_every_claim_is_documented(claim: str) -> None:
    assert any(sentence in claim for sentence, _ in ROWS), claim


@pytest.mark.parametrize(("sentence", "shown"), ROWS)
def test_every_documented_sentence_is_on_the_page_and_has_tests(sentence: str, shown: str) -> None:
    assert any(sentence in claim for claim in claims())
    tests = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", shown)
    assert tests
    for path, name in tests:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)
