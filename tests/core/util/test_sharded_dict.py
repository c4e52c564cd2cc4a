"""A sharded dict against a dict."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unbasket.core.util import ShardedDict

keys = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63), st.text("ab", max_size=2))


@given(st.lists(st.tuples(st.sampled_from(["set", "delete", "pop"]), keys, st.integers())))
def test_it_behaves_like_a_dict(events: list[tuple[str, int | str, int]]) -> None:
    sharded: ShardedDict[int | str, int] = ShardedDict()
    plain: dict[int | str, int] = {}
    for kind, key, value in events:
        if kind == "set":
            sharded[key] = plain[key] = value
        elif key in plain and kind == "pop":
            assert sharded.pop(key) == plain.pop(key)
        elif key in plain:
            del sharded[key], plain[key]
        assert (key in sharded, sharded.get(key), sharded.get(key, 7)) == (
            key in plain,
            plain.get(key),
            plain.get(key, 7),
        )
        assert len(sharded) == len(plain)
    assert dict(sharded.items()) == plain == {key: sharded[key] for key in sharded}
    assert sorted(sharded.values()) == sorted(plain.values())
    assert repr(sharded) == repr(dict(sharded.items()))


def test_codes_of_keys_that_are_present() -> None:
    sharded: ShardedDict[int | str, int] = ShardedDict()
    sharded["milk"], sharded[17] = 3, 0
    codes = sharded.codes_of(["tea", 17, "milk", 17])
    assert codes.tolist() == [0, 3, 0]
    assert codes.dtype == np.uint32
    assert sharded.codes_of(key for key in ("milk", "gin")).tolist() == [3]
    assert sharded.codes_of([]).tolist() == []
