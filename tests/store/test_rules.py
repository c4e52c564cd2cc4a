"""Retention rules in files: valid ones, and the errors of bad ones."""

from pathlib import Path

import pytest

from unbasket.errors import RetentionError
from unbasket.store.rules import Rule, Rules, read_rules


def rules_in(folder: Path, text: str) -> Rules:
    path = folder / "rules.toml"
    path.write_text(text)
    return read_rules(path)


def test_read_rules(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("since,user\n2024,u1\n2025,17\n")
    text = """
        time_unit = "ms"
        [[rule]]
        name = "two years"
        older_than_days = 730
        [[rule]]
        category = "alcohol"
        users = "out.csv"
        [[rule]]
        items = ["wine", 7]
        users = ["u1", 17]
    """
    assert rules_in(tmp_path, text) == Rules(
        [
            Rule("two years", older_than_days=730),
            Rule("rule 2", category="alcohol", users=["u1", "17"]),
            Rule("rule 3", items=["wine", 7], users=["u1", 17]),
        ],
        "ms",
    )


@pytest.mark.parametrize(
    ("content", "users"),
    [
        ("u1\n17\n", ["u1", "17"]),
        ("\ufeffuser\nu1\n", ["u1"]),
        ("customer,name\nu1,Ann\n", ["customer", "u1"]),
        ("id,user\n1,u1\n\n2,u2\n", ["u1", "u2"]),
        ('user\n"a ""b"""\n"two\nlines"\n', ['a "b"', "two\nlines"]),
        ("user\n", []),
        ("", []),
    ],
)
def test_files_of_users(tmp_path: Path, content: str, users: list[str]) -> None:
    (tmp_path / "out.csv").write_text(content, encoding="utf-8")
    [rule] = rules_in(tmp_path, '[[rule]]\ncategory = "alcohol"\nusers = "out.csv"').rules
    assert rule.users == users


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "There are no rules. Begin each with a line"),
        ("rule = [1]", "There are no rules"),
        ("[rule]\nolder_than_days = 1", "in double brackets"),
        ("[[rule]", "The rules are not valid TOML"),
        ("unit = 's'", "Unknown field `unit`. Did you mean `time_unit`?"),
        ("colour = 's'", "Unknown field `colour`. There may be time_unit, rule."),
        ("time_unit = 'h'", "`time_unit` must be one of s, ms, us, day, not 'h'"),
        ("time_unit = ['s']", "`time_unit` must be one of"),
        ("[[rule]]\nname = 'x'", "In rule 'x', state what to forget: older_than_days, category or items"),
        ("[[rule]]\nusers = ['ann']", "In rule 1, state what to forget"),
        (
            "[[rule]]\nitems = [1]\n[[rule]]\nolder = 1",
            "Unknown field `older` in rule 2. Did you mean `older_than_days`?",
        ),
        ("[[rule]]\nname = 'x'\ncategry = 'a'", "Unknown field `categry` in rule 'x'. Did you mean `category`?"),
        ("[[rule]]\nfoo = 'a'", "Unknown field `foo` in rule 1. There may be name, older_than_days, category,"),
        (
            "[[rule]]\nolder_than_days = -1",
            "In rule 1, `older_than_days` must be a whole number from 1 to 100,000, not -1",
        ),
        ("[[rule]]\nolder_than_days = 1.5", "not 1.5"),
        ("[[rule]]\nolder_than_days = true", "not True"),
        ("[[rule]]\ncategory = 1", "`category` must be a text, not 1"),
        ("[[rule]]\nname = 1", "In rule 1, `name` must be a text, not 1"),
        ("[[rule]]\nitems = 'wine'", "`items` must be a list of item ids, not 'wine'"),
        ("[[rule]]\nitems = [1]\nusers = [1.5]", "`users` must be a list of user ids, or the name of a CSV file, not "),
        ("[[rule]]\nitems = [1]\ncategory = 'a'", "state a category or items"),
        ("[[rule]]\nname = 'x'\nitems = []", "In rule 'x', `items` is an empty list. Name some, or take the line out"),
        ("[[rule]]\ncategory = 'a'\nusers = []", "take the line out: without it, the rule is for all users"),
        ("[[rule]]\nname = 'x'\nitems = [1]\nusers = 'no.csv'", "no.csv can't be read: No such file"),
        ("[[rule]]\nitems = [1]\nusers = 'latin.csv'", "latin.csv is not a CSV file in UTF-8"),
        ("[[rule]]\nitems = [1]\nusers = 'quote.csv'", "quote.csv has a quote that is never closed"),
        ("[[rule]]\nitems = [1]\nusers = 'short.csv'", "short.csv has no user"),
    ],
)
def test_bad_rules(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "latin.csv").write_bytes("Käthe\n".encode("latin-1"))
    (tmp_path / "quote.csv").write_text('user\nann\n"bob\ncleo\n')
    (tmp_path / "short.csv").write_text("id,user\n1,ann\n2\n")
    with pytest.raises(RetentionError) as caught:
        rules_in(tmp_path, text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "rules.toml"))
    if ".csv" in text and "latin" not in text and "no.csv" not in text:
        assert ", line 3 of " in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RetentionError, match=r"cannot read the rules in .*no.toml: No such file"):
        read_rules(tmp_path / "no.toml")
