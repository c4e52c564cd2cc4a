"""Every request that the page's lib/api.js can make, in Chromium, against OpenAPI."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.service.browser import DESKTOP, Watch, chromium
from tests.service.serving import Service, make_shop, serving

from unbasket.service.routes import ROUTES

NO_REQUESTS = {"ApiError", "pages"}
CALLS = {
    "me": "api.me()",
    "recommendations": "api.recommendations('ann', {n: 2, only_new: true, exclude: ['milk', 17], explain: true})",
    "explanation": "api.explanation('ann', 'milk')",
    "preview": "api.preview('ann', {forget: {category: 'Alcohol'}})",
    "verify": "api.verify('ann')",
    "similar": "api.similar('ann', 2)",
    "addBasket": "api.addBasket('ann', ['tea'], 30)",
    "users": "api.users({prefix: 'a', limit: 1})",
    "items": "api.items({query: 'milk', limit: 1})",
    "categories": "api.categories()",
    "events": "api.events([{event: 'learn', user: 'dan', basket: 1, items: ['tea']}, {event: 'forget', user: 'bob'}])",
    "receipts": "api.receipts({order: 'newest', after: 2, limit: 1})",
    "verifyReceipts": "api.verifyReceipts((await api.receipts({})).receipts)",
    "receiptProof": "api.receiptProof(1)",
    "absence": "api.absence('zoe')",
    "checkpoint": "api.checkpoint()",
    "verifyProof": "api.verifyProof(await api.checkpoint())",
    "retention": 'api.retention(\'[[rule]]\\nname = "gin"\\nitems = ["gin"]\', false)',
    "stats": "api.stats()",
    "learned": "api.learned()",
    "shopperToken": "api.shopperToken('ann', 60)",
    "held": "api.held('ann')",
    "suppress": "api.suppress('ann', 'tea')",
    "allow": "api.allow('ann', 'tea')",
    "forget": "Promise.all([{basket: 1, item: 'milk'}, {item: 'wine'}, {category: 'Dairy'}, {basket: 2}, {}]"
    ".map((scope) => api.forget('cleo', scope)))",
}


@pytest.fixture
def watch(service: Service) -> Iterator[Watch]:
    """Open the page in a browser."""
    host = f"127.0.0.1:{service.port}"
    with chromium() as browser:
        page = browser.new_context(viewport=DESKTOP, base_url=f"http://{host}").new_page()
        yield Watch(page, host)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(make_shop(tmp_path / "shop.db")) as running:
        yield running


def test_every_request_is_as_openapi_describes(watch: Watch) -> None:
    page = watch.page
    page.goto("/docs")
    exported = page.evaluate("async () => Object.keys(await import('/static/lib/api.js'))")
    assert {*exported} - NO_REQUESTS == CALLS.keys()
    for call in CALLS.values():
        page.evaluate(f"async () => {{ const api = await import('/static/lib/api.js'); await {call}; }}")
    page.wait_for_timeout(100)
    assert watch.faults == []
    assert len(watch.routes) >= len(CALLS)
    assert watch.routes <= {route.line for route in ROUTES}


def test_a_request_that_openapi_does_not_describe_is_found(watch: Watch) -> None:
    page: Page = watch.page
    watch.expected.append("400")
    page.goto("/docs")
    page.evaluate("async () => (await fetch('/v1/users?n=1')).text()")
    page.wait_for_timeout(100)
    assert watch.faults == [f"{page.url.removesuffix('/docs')}/v1/users?n=1: no query parameter 'n'"]
