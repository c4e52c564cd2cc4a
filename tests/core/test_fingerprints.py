"""Vectors, neighbors, recommendations and digests on real shops equal those of the first compiled core, to the bit."""

import json

import pytest
from tests.core.fingerprints import GROUPINGS, KEPT, fingerprints

from unbasket.params import Grouping


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("shop", ["completejourney", pytest.param("tafeng", marks=pytest.mark.needs("tafeng"))])
def test_small_shops(shop: str, grouping: Grouping) -> None:
    assert fingerprints(shop, grouping) == json.loads(KEPT.read_text())[f"{shop} {grouping}"]


@pytest.mark.slow
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize(
    "shop", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("coop100", "instacart", "valuedshopper")]
)
def test_larger_shops(shop: str, grouping: Grouping) -> None:
    assert fingerprints(shop, grouping) == json.loads(KEPT.read_text())[f"{shop} {grouping}"]
