"""Chromium driven by Playwright, and a watch for console errors, foreign requests and breaches of OpenAPI."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, ViewportSize, sync_playwright
from tests.service.contract import request_faults, response_faults, route_of

DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}

_FLAGS = [
    "--no-sandbox",
    "--headless=new",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Launch the browser on the PATH, without background traffic."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "install Chromium: tests of the page run in it"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """A record of console errors and warnings (CSP violations among them), of requests to other hosts, and of requests
    and responses that are not as OpenAPI describes them; `routes` has those that the page used.
    """

    def __init__(self, page: Page, host: str) -> None:
        self.faults: list[str] = []
        self.expected: list[str] = []
        self.routes: set[str] = set()
        self.page = page
        self._host = host
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_finished)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in self.expected):
            self.faults.append(f"{message.type}: {message.text}")

    def _on_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.netloc != self._host and address.scheme != "blob":
            self.faults.append(f"a request to {request.url}")

    def _on_finished(self, request: Request) -> None:
        """Check a request to the API and its response."""
        if not urlsplit(request.url).path.startswith("/v1/"):
            return
        method, url, response = request.method, request.url, request.response()
        sent = request.post_data_buffer or b""
        self.faults += request_faults(method, url, request.headers.get("content-type", ""), sent)
        self.routes.add(route_of(method, url).line)
        try:
            body = response.body() if response else b""
        except Error:  # the page has gone to another address, and the browser has dropped the body
            return
        if response:
            self.faults += response_faults(method, url, response.status, response.headers["content-type"], body)
