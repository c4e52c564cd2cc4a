"""Decoding of responses: JSON values become the types of the engine."""

from collections.abc import Iterable
from typing import Any

import msgspec

from unbasket.client.results import ErasedMany, Recommendations
from unbasket.domain.results import (
    Basket,
    BasketShare,
    Explanation,
    ItemFactor,
    Learned,
    LearnedWeights,
    Product,
    Recommendation,
)
from unbasket.store import Erased, ErasedId, Receipt

Json = dict[str, Any]


def learned(value: Json) -> Learned | None:
    """Return the result of a learn; None for a key that may not read, which the service does not tell."""
    return None if value["result"] == "learned" else Learned(value["result"])


def erased(value: Json) -> Erased:
    """Return the result of a forget."""
    result = Erased(**value["removed"])
    result.receipt, result.secret, result.seconds = receipt(value["receipt"]), value["secret"], value["seconds"]
    return result


def erased_many(value: Json) -> ErasedMany:
    """Return the result of several forgets."""
    result = ErasedMany(**value["removed"])
    result.receipts, result.secrets = [receipt(each) for each in value["receipts"]], value["secrets"]
    result.seconds = value["seconds"]
    return result


def erased_id(value: Json) -> ErasedId:
    """Return the result of a rename."""
    result = ErasedId(value["purchases"], value["baskets"])
    result.receipt, result.secret, result.seconds = receipt(value["receipt"]), value["secret"], value["seconds"]
    return result


def event_results(value: Json) -> list[Learned | Erased | None]:
    """Return the result of each event of a bulk request."""
    return [_event_result(each, value["seconds"]) for each in value["results"]]


def _event_result(value: Json, seconds: float) -> Learned | Erased | None:
    if "receipt" not in value:
        return learned(value)
    counts = {name: value["receipt"][name] for name in Erased._fields}
    return erased({"removed": counts, "seconds": seconds, **value})


def receipt(value: Json) -> Receipt:
    """Return a receipt."""
    return msgspec.convert(value, Receipt)


def recommendations(found: Iterable[Json], *, popular: bool) -> Recommendations:
    """Return recommendations, with the products and explanations that came along."""
    found = list(found)
    result = Recommendations(Recommendation(each["item"], each["score"]) for each in found)
    result.popular = popular
    result.products = {each["item"]: product(each) for each in found if each.keys() & {"name", "category", "fields"}}
    result.explanations = {each["item"]: explanation(each["explanation"]) for each in found if "explanation" in each}
    return result


def product(value: Json) -> Product:
    """Return an item with its name, category and further columns, where it has them."""
    return Product(value["item"], value.get("name"), value.get("category"), value.get("fields") or {})


def explanation(value: Json) -> Explanation:
    """Return an explanation. As in the engine, a count of neighbors that a shopper may not know is 0."""
    shares = tuple(BasketShare(**each) for each in value["baskets"])
    counts = {name: value[name] or 0 for name in ("neighbors", "neighbors_with_item")}
    fields = {name: value[name] for name in Explanation._fields}
    return Explanation(**fields | counts | {"baskets": shares})


def history(value: Json) -> list[Basket]:
    """Return the baskets of a user's export."""
    return [
        Basket(each["basket"], each["time"], tuple(item["item"] for item in each["items"])) for each in value["baskets"]
    ]


def learned_weights(value: Json) -> LearnedWeights | None:
    """Return learned weights, or None if the model has a number for alpha."""
    if not value["learned"]:
        return None
    most, least = (
        tuple(ItemFactor(each["item"], each["factor"], each["buyers"]) for each in value[name])
        for name in ("most", "least")
    )
    return LearnedWeights(value["alpha"], value["users"], most, least)
