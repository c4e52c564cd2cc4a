"""Calls about the service: is it alive, is it ready, how is it doing, who am I to it."""

from unbasket.service.request import Request
from unbasket.service.shapes.answers import HealthAnswer, MeAnswer, ReadyAnswer


def health(_: Request) -> HealthAnswer:
    """The process answers."""
    return HealthAnswer()


def ready(request: Request) -> ReadyAnswer:
    """Whether the shop is loaded."""
    shop = request.shop
    return ReadyAnswer(shop.ready, shop.stage, list(shop.progress))


def me(request: Request) -> MeAnswer:
    """Who asks."""
    caller = request.caller
    key = caller.name.removeprefix("key ") if caller.shopper is None else ""
    return MeAnswer(key or None, caller.shopper, sorted(caller.grants))


def metrics(request: Request) -> bytes:
    """What Prometheus reads."""
    return request.metrics.exposition()
