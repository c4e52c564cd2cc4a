"""Handlers about the service: health, readiness, metrics, parameters, the caller."""

from dataclasses import asdict

import msgspec
from prometheus_client import generate_latest

from unbasket.domain.results import ItemFactor
from unbasket.service.request import Request
from unbasket.service.schemas import responses


def health(_: Request) -> responses.HealthResponse:
    """Report that the process is alive."""
    return responses.HealthResponse()


def ready(request: Request) -> responses.ReadyResponse:
    """Return whether the database is loaded; until then, 503 with the progress."""
    loader = request.shared.loader
    return responses.ReadyResponse(loader.ready, loader.stage, list(loader.progress))


def params(request: Request) -> responses.ModelParams:
    """Return the parameters of the model."""
    return responses.ModelParams(**asdict(request.rec.params))


def learned(request: Request) -> responses.LearnedWeightsResponse:
    """Return the weights that the model has learned, with the items bought again most and least readily."""
    found = request.rec.learned()
    if found is None:
        return responses.LearnedWeightsResponse(False, float(request.rec.params.alpha), 0, [], [])
    most, least = ([_described(request, factor) for factor in factors] for factors in (found.most, found.least))
    return responses.LearnedWeightsResponse(True, found.alpha, found.users, most, least)


def _described(request: Request, factor: ItemFactor) -> responses.LearnedFactor:
    product = request.rec.catalog[factor.item]
    return responses.LearnedFactor(*factor, product.name, product.category)


def change_params(request: Request) -> responses.ModelParams:
    """Change parameters of the model; the old model serves until the new one is complete."""
    changed = msgspec.to_builtins(request.body)  # without those that are unset
    request.rec.change_params(request.rec.params.changed(**changed))
    return params(request)


def id_types(request: Request) -> responses.IdTypesResponse:
    """Return whether ids are numbers or texts."""
    return responses.IdTypesResponse(**request.rec.id_types())


def change_ids(request: Request) -> responses.IdTypesResponse:
    """Change numbers into texts as ids of some kinds; the old model serves until the new one is complete."""
    request.shared.empty_receipts.clear()
    request.rec.change_ids(**msgspec.structs.asdict(request.body))
    return id_types(request)


def me(request: Request) -> responses.MeResponse:
    """Return the caller: the name and the roles of a key, or the shopper of a token."""
    caller = request.caller
    key = caller.name.removeprefix("key ") if caller.shopper is None else ""
    return responses.MeResponse(key or None, caller.shopper, sorted(caller.grants))


def metrics(request: Request) -> bytes:
    """Return metrics for Prometheus."""
    return generate_latest(request.shared.metrics.registry)
