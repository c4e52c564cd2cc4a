"""Ids as text: on the command line, in URLs, on the page. An engine then converts them to its own types."""

import json

from unbasket.domain.ids import Id, whole_number

RULE = (
    "Ids: all users of a database have numbers as ids, or all have texts, and 17 is whichever of the two it is; items "
    "and baskets likewise. Where it holds none yet, 17 is a number, and '\"17\"', with the inner quotes, is text."
)
"""The rule, for the help of commands."""


def parse_id(text: str) -> Id:
    """Return the id that a text spells: a number in its usual spelling, the content of JSON's quotes, or else the text.

    >>> [parse_id(text) for text in ("17", "017", "ann", '"17"')]
    [17, '017', 'ann', '17']
    """
    unquoted = _unquoted(text)
    if unquoted is not None:
        return unquoted
    number = whole_number(text)
    return text if number is None else number


def format_id(name: Id) -> str:
    r"""Return a text that spells an id in an engine that holds it: the id itself, in quotes if it has quotes.

    >>> format_id("ann"), format_id(17), format_id("17"), format_id('"17"')
    ('ann', '17', '17', '"\\"17\\""')
    """
    text = str(name)
    return text if _unquoted(text) is None else json.dumps(text, ensure_ascii=False)


def _unquoted(text: str) -> str | None:
    """Return the content of a JSON string; None for any other text."""
    if not text.lstrip(" \t\n\r").startswith('"'):  # a failing parser is slow, and other JSON may be nested deeply
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None
