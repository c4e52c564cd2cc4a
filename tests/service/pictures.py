"""Takes the pictures of docs/page.md: `python -m tests.service.pictures`."""

import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize
from tests.service.browser import DESKTOP, PHONE, chromium
from tests.service.process import Service, running

import unbasket as ub
from unbasket.datasets import generate

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SHOPPER = 7

Save = Callable[[Page, str], None]


def take(folder: Path = FOLDER) -> None:
    """Make a shop, open every view at both widths, and keep what it looks like."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        db = Path(place) / "shop.db"
        made = generate(users=400, seed=3)
        with ub.open(db, ub.Params(neighbors=50)) as rec:
            rec.fit(made.history)
            rec.describe(made.items)
        with running(db) as service, chromium() as browser:
            _take(browser, service, lambda page, name: _save(page, folder / f"{name}-desktop.png"), DESKTOP)
            _take(browser, service, lambda page, name: _save(page, folder / f"{name}-phone.png"), PHONE)
            _take_dark(browser, service, folder / "shopper-dark.png")


def _save(page: Page, path: Path) -> None:
    page.mouse.move(0, 0)
    taken = Image.open(BytesIO(page.screenshot(animations="disabled")))
    taken.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def _take(browser: Browser, service: Service, save: Save, size: ViewportSize) -> None:
    page = browser.new_page(viewport=size, base_url=f"http://127.0.0.1:{service.port}")
    _shopper(page, save)
    _officer(page, save)
    _engineer(page, service, save)
    page.goto("/docs")
    page.locator(".call summary").nth(4).click()
    page.locator("pre").first.wait_for()
    save(page, "docs")
    page.close()


def _shopper(page: Page, save: Save) -> None:
    page.goto(f"/#/shopper/{SHOPPER}")
    page.get_by_role("button", name="Why am I seeing").first.click()
    page.locator(".shares").wait_for()
    save(page, "shopper")
    name = page.locator(".recommendations .name").first.inner_text()
    page.locator(".items li").filter(has_text=name).first.get_by_role("button").click()
    page.get_by_role("radio").nth(1).check()
    page.get_by_role("region", name="Afterwards").wait_for()
    page.get_by_text("Nothing is forgotten yet.").wait_for()
    save(page, "preview")
    page.get_by_role("button", name="Forget for good").click()
    page.locator("dialog .erasure").wait_for()
    save(page, "forgotten")


def _officer(page: Page, save: Save) -> None:
    page.goto(f"/#/officer/people/{SHOPPER + 1}")
    page.reload()
    page.locator(".basket").first.wait_for()
    save(page, "person")
    page.goto("/#/officer/batch")
    page.get_by_label("or paste its lines").fill(f"user,basket,item\n{SHOPPER + 2},,\n{SHOPPER + 3},,52\n399,,\n")
    page.get_by_role("button", name="Check").click()
    page.get_by_text("Nothing is forgotten yet.").scroll_into_view_if_needed()
    save(page, "batch")
    page.goto("/#/officer/retention")
    page.get_by_role("button", name="Dry run").click()
    page.get_by_role("button", name="Forget these").scroll_into_view_if_needed()
    save(page, "retention")
    for item in range(20, 24):
        page.request.delete(f"/v1/users/{SHOPPER + 4}/items/{item}")
    page.goto("/#/officer/receipts")
    page.get_by_role("button", name="Verify the chain").click()
    page.locator(".notice.good").wait_for()
    save(page, "receipts")


def _engineer(page: Page, service: Service, save: Save) -> None:
    page.goto("/#/engineer")
    for moment in range(8):
        for user in range(1, 100 + 40 * (moment % 3)):
            service.ask("GET", f"/v1/users/{user}/recommendations")
            if user % 9 == 0:
                service.ask("PUT", f"/v1/users/{user}/baskets/picture", {"items": [user, moment + 1]})
        page.wait_for_timeout(2000)
    save(page, "engineer")
    page.goto("/#/engineer/try")
    page.get_by_label("Shopper").fill(str(SHOPPER + 5))
    for text in ("Oat milk 1 l", "Rye bread 1 kg"):
        page.get_by_label("Item", exact=True).fill(text)
        page.keyboard.press("Enter")
        page.locator(".picked").get_by_text(text).wait_for()
    page.get_by_role("button", name="Preview").click()
    page.locator(".sides").scroll_into_view_if_needed()
    save(page, "try")


def _take_dark(browser: Browser, service: Service, path: Path) -> None:
    address = f"http://127.0.0.1:{service.port}/#/shopper/{SHOPPER}"
    page = browser.new_page(viewport=DESKTOP, color_scheme="dark")
    page.goto(address)
    page.locator(".ranks li").first.wait_for()
    _save(page, path)


if __name__ == "__main__":
    take()
