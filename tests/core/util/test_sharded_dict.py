"""A dict in pieces against a dict."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unbasket.core import ShardedDict

keys = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63), st.text("ab", max_size=2))


@given(st.lists(st.tuples(st.sampled_from(["set", "delete", "pop"]), keys, st.integers())))
def test_it_is_as_a_dict(events: list[tuple[str, int | str, int]]) -> None:
    pieces: ShardedDict[int | str, int] = ShardedDict()
    plain: dict[int | str, int] = {}
    for kind, key, value in events:
        if kind == "set":
            pieces[key] = plain[key] = value
        elif key in plain and kind == "pop":
            assert pieces.pop(key) == plain.pop(key)
        elif key in plain:
            del pieces[key], plain[key]
        assert (key in pieces, pieces.get(key), pieces.get(key, 7)) == (key in plain, plain.get(key), plain.get(key, 7))
        assert len(pieces) == len(plain)
    assert dict(pieces.items()) == plain == {key: pieces[key] for key in pieces}
    assert sorted(pieces.values()) == sorted(plain.values())
    assert repr(pieces) == repr(dict(pieces.items()))


def test_codes_of_keys_that_are_there() -> None:
    pieces: ShardedDict[int | str, int] = ShardedDict()
    pieces["milk"], pieces[17] = 3, 0
    codes = pieces.codes_of(["tea", 17, "milk", 17])
    assert codes.tolist() == [0, 3, 0]
    assert codes.dtype == np.uint32
    assert pieces.codes_of(key for key in ("milk", "gin")).tolist() == [3]
    assert pieces.codes_of([]).tolist() == []
