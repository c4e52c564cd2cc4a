"""The screenshots of docs/page.md: `python -m tests.service.pictures`, on an idle machine, since they show times."""

import json
import re
import sys
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Literal, NamedTuple

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize
from tests.service.browser import DESKTOP, PHONE, chromium
from tests.service.process import Service, running

import unbasket as ub
from unbasket.datasets import generate

FOLDER = Path(__file__).parents[2] / "docs" / "images"
REPEATS = 7
"""Erasures to take screenshots of; the one with the median time is kept."""

Save = Callable[[Page, str], None]


class Series(NamedTuple):
    """Screenshots of one screen size: the suffix of their names, and the ones to keep; all if none is named.

    Its shoppers start at `first`, since a series forgets purchases that the next would need.
    """

    suffix: str
    size: ViewportSize
    scheme: Literal["light", "dark"]
    first: int
    kept: frozenset[str] = frozenset()

    def keeps(self, name: str) -> bool:
        return not self.kept or name in self.kept


SHOPPER = {"shopper", "never", "cart", "preview", "forgotten"}
OFFICER = {"customer", "nothing", "batch", "batch-done", "retention", "receipts"}
SERIES = (
    Series("desktop", DESKTOP, "light", 52),
    Series("phone", PHONE, "light", 80),
    Series("dark", DESKTOP, "dark", 122, frozenset(SHOPPER | OFFICER)),
    Series("phone-dark", PHONE, "dark", 150, frozenset(SHOPPER | OFFICER | {"engineer"})),
)


def take(folder: Path = FOLDER) -> None:
    """Make a shop, open every view on every screen, and save the screenshots."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        db = Path(temporary) / "shop.db"
        made = generate(users=400, seed=3)
        with ub.open(db, ub.Params(neighbors=50)) as rec:
            rec.fit(made.history)
            rec.describe(made.items)
        with running(db) as service, chromium() as browser:
            _warm_up(service)
            for series in SERIES:
                _take(browser, service, series, folder)


def _warm_up(service: Service) -> None:
    """Fill the caches as in a service that has run for a while."""
    for user in range(1, 40):
        service.ask("GET", f"/v1/users/{user}/recommendations")
        service.ask("POST", f"/v1/users/{user}/preview", {"forget": {"item": user}})
        service.ask("DELETE", f"/v1/users/{user}/items/{user}")


def _take(browser: Browser, service: Service, series: Series, folder: Path) -> None:
    def save(page: Page, name: str) -> None:
        if series.keeps(name):
            _keep(_screen(page), folder / f"{name}-{series.suffix}.png")

    page = browser.new_page(
        viewport=series.size, color_scheme=series.scheme, base_url=f"http://127.0.0.1:{service.port}"
    )
    _shopper(page, save, series.first)
    if series.keeps("forgotten"):
        _keep(_typical_erasure(page, series.first), folder / f"forgotten-{series.suffix}.png")
    _officer(page, save, series.first + REPEATS)
    _engineer(page, service, save, series.first + REPEATS + 5)
    page.goto("/docs")
    page.locator(".route summary").nth(4).click()
    page.locator("pre").first.wait_for()
    save(page, "docs")
    page.close()


def _screen(page: Page) -> bytes:
    page.mouse.move(0, 0)
    return page.screenshot(animations="disabled")


def _keep(picture: bytes, path: Path) -> None:
    Image.open(BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def _shopper(page: Page, save: Save, shopper: int) -> None:
    page.goto(f"/#/shopper/{shopper}")
    page.get_by_role("button", name="Why am I seeing").first.click()
    page.locator(".shares").wait_for()
    page.evaluate("scrollTo(0, 0)")
    save(page, "shopper")
    page.get_by_role("button", name=re.compile("^Don’t recommend .+ again$")).nth(2).click()
    page.get_by_role("button", name="Undo").scroll_into_view_if_needed()
    save(page, "never")
    page.get_by_role("button", name="Undo").click()
    _fill_cart(page)
    save(page, "cart")
    page.evaluate("sessionStorage.clear()")
    page.reload()
    _preview(page, shopper)
    save(page, "preview")
    page.get_by_role("button", name="Keep it").click()


def _fill_cart(page: Page) -> None:
    """Put two recommendations into the cart, and wait for the next ones."""
    for count in (1, 2):
        page.get_by_role("button", name="into my cart").first.click()
        page.locator(f".cart li:nth-child({count})").wait_for()
        page.locator(".recommendations .ranks li").nth(9).wait_for()
    page.locator(".recommendations").evaluate("panel => panel.scrollIntoView()")


def _preview(page: Page, shopper: int) -> None:
    """Open the dialog that removes the first recommendation from all baskets of a shopper."""
    page.goto(f"/#/shopper/{shopper}")
    name = page.locator(".recommendations .name").first.inner_text()
    page.locator(".items li").filter(has_text=name).first.get_by_role("button").click()
    page.get_by_role("radio").nth(1).check()
    page.get_by_role("region", name="Afterwards").wait_for()
    page.get_by_text("Nothing has been forgotten yet.").wait_for()


def _typical_erasure(page: Page, first: int) -> bytes:
    """Return the screenshot of the erasure with the median time among several shoppers."""
    taken = []
    for shopper in range(first, first + REPEATS):
        _preview(page, shopper)
        page.get_by_role("button", name="Forget for good").click()
        page.locator("dialog .erasure").wait_for()
        milliseconds = float(re.sub(r"[^\d.]", "", page.locator("dialog .erasure").inner_text()))
        taken.append((milliseconds, _screen(page)))
        page.get_by_role("button", name="Done").click()
    sys.stderr.write(f"erasures in ms: {sorted(milliseconds for milliseconds, _ in taken)}\n")
    return sorted(taken)[REPEATS // 2][1]


def _officer(page: Page, save: Save, first: int) -> None:
    page.goto(f"/#/officer/customers/{first}")
    page.locator(".basket").first.wait_for()
    save(page, "customer")
    page.goto("/#/officer/customers/9999")
    page.get_by_text("holds nothing about this customer").wait_for()
    save(page, "nothing")
    page.goto("/#/officer/batch")
    lines = ["user,basket,item", f"{first + 1},,", f"{first + 2},,52", f"{first + 1},,", "999,,"]
    page.get_by_label("or paste its lines").fill("\n".join(lines))
    page.get_by_role("button", name="Check").click()
    page.get_by_text("Nothing has been forgotten yet.").scroll_into_view_if_needed()
    save(page, "batch")
    page.get_by_role("button", name=re.compile("^Forget all")).click()
    page.get_by_role("button", name="Lines and receipts as CSV").scroll_into_view_if_needed()
    save(page, "batch-done")
    page.goto("/#/officer/retention")
    page.get_by_label("Rules in TOML").fill(
        'time_unit = "s"\n\n[[rule]]\nname = "no alcohol for those who opted out"\ncategory = "Alcohol"\n'
        f"users = {list(range(first, first + 30))}\n"
    )
    page.get_by_role("button", name="Dry run").click()
    page.get_by_role("button", name="Forget these").scroll_into_view_if_needed()
    save(page, "retention")
    _receipts(page, save)


def _receipts(page: Page, save: Save) -> None:
    page.goto("/#/officer/receipts")
    last = int(page.locator("tbody td").first.inner_text())
    held = page.request.get(f"/v1/receipts?after={last - 6}&limit=6").json()["receipts"]
    lines = "".join(f"{json.dumps(receipt)}\n" for receipt in held)
    page.get_by_label("To verify a file").set_input_files(
        {"name": "receipts.ndjson", "mimeType": "application/x-ndjson", "buffer": lines.encode()}
    )
    page.locator(".proved").scroll_into_view_if_needed()
    save(page, "receipts")


def _engineer(page: Page, service: Service, save: Save, shopper: int) -> None:
    page.goto("/#/engineer")
    for moment in range(8):
        for user in range(1, 100 + 40 * (moment % 3)):
            service.ask("GET", f"/v1/users/{user}/recommendations")
            if user % 9 == 0:
                service.ask("PUT", f"/v1/users/{user}/baskets/picture", {"items": [user, moment + 1]})
        page.wait_for_timeout(2000)
    save(page, "engineer")
    page.goto("/#/engineer/try")
    page.get_by_label("Shopper").fill(str(shopper))
    for text in ("Oat milk 1 l", "Rye bread 1 kg"):
        page.get_by_label("Item", exact=True).fill(text)
        page.keyboard.press("Enter")
        page.locator(".picked").get_by_text(text).wait_for()
    page.get_by_role("button", name="Preview").click()
    page.locator(".sides").scroll_into_view_if_needed()
    save(page, "try")


if __name__ == "__main__":
    take()
