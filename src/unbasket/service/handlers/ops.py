"""Calls about the service: is it alive, is it ready, how is it doing, which model has it, who am I to it."""

from dataclasses import asdict

import msgspec

from unbasket.service.request import Request
from unbasket.service.schemas.responses import HealthAnswer, MeAnswer, ModelParams, ReadyAnswer


def health(_: Request) -> HealthAnswer:
    """The process answers."""
    return HealthAnswer()


def ready(request: Request) -> ReadyAnswer:
    """Whether the shop is loaded."""
    shop = request.shop
    return ReadyAnswer(shop.ready, shop.stage, list(shop.progress))


def params(request: Request) -> ModelParams:
    """The parameters of the model."""
    return ModelParams(**asdict(request.rec.params))


def change_params(request: Request) -> ModelParams:
    """Change those that are named."""
    named = msgspec.structs.asdict(request.body)
    changed = {name: value for name, value in named.items() if value is not msgspec.UNSET}
    request.rec.change_params(request.rec.params.changed(**changed))
    return params(request)


def me(request: Request) -> MeAnswer:
    """Who asks."""
    caller = request.caller
    key = caller.name.removeprefix("key ") if caller.shopper is None else ""
    return MeAnswer(key or None, caller.shopper, sorted(caller.grants))


def metrics(request: Request) -> bytes:
    """What Prometheus reads."""
    return request.metrics.exposition()
