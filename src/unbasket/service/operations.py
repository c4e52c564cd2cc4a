"""Calls of whoever runs the service: is it alive, is it ready, how is it doing."""

from unbasket.service.request import Request
from unbasket.service.shapes import HealthAnswer, ReadyAnswer


def health(_: Request) -> HealthAnswer:
    """The process answers."""
    return HealthAnswer()


def ready(request: Request) -> ReadyAnswer:
    """Whether the shop is loaded."""
    shop = request.shop
    return ReadyAnswer(shop.ready, shop.stage, list(shop.progress))


def metrics(request: Request) -> bytes:
    """What Prometheus reads."""
    return request.metrics.exposition()
