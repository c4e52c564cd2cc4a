"""The web page in Debian's Chromium, against the real service: nothing on it is mocked."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
from playwright.sync_api import Browser, Download, Page, Route, ViewportSize, expect
from tests.cli.running import run
from tests.service.browser import DESKTOP, PHONE, Watch, chromium
from tests.service.process import Service, running

import unbasket as ub
from unbasket.datasets import generate
from unbasket.domain.id_text import format_id, parse_id
from unbasket.store import Receipt, audit
from unbasket.store.receipts import subject_of
from unbasket.verifier import verify

TIMEOUT = 15_000  # milliseconds; the machine may be busy
HOSTILE = "<img src=x onerror=document.title='broken'>"
NARROW: ViewportSize = {"width": 360, "height": 740}
VIEWS = [
    "/#/shopper",
    "/#/shopper/7",
    "/#/officer",
    "/#/officer/customers/7",
    "/#/officer/batch",
    "/#/officer/retention",
    "/#/officer/receipts",
    "/#/engineer",
    "/#/engineer/try",
    "/#/engineer/similar/7",
    "/docs",
]
# what every view shows once it is there, and no view before
SETTLED = ".finder, .ranks li, .basket, textarea, .empty, .chart, datalist, td, .route"


NOTHING_HELD = "Unbasket’s database holds nothing about this {}; invoices and other systems are separate."
PANELS = (".recommendations", ".summary", ".history")  # of the shopper's view, in their order on a phone


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=TIMEOUT)
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Make a shop with names and categories, and a shopper whose id, and an item's, look like markup."""
    path = tmp_path_factory.mktemp("page") / "shop.db"
    made = generate(users=120, seed=3)
    with ub.open(path, ub.Params(neighbors=20)) as rec:
        rec.fit(made.history)
        rec.describe(made.items)
        rec.change_ids(user="text", item="text")
        rec.learn(HOSTILE, [HOSTILE, 1], basket=2**60, time=1_700_000_000)
        rec.learn("170", [1, 2, 3], basket=2**60 + 1)
    with running(path) as service:
        yield service


@pytest.fixture
def page(browser: Browser, shop: Service) -> Iterator[Page]:
    yield from _watched(browser, shop, DESKTOP)


@pytest.fixture
def phone(browser: Browser, shop: Service) -> Iterator[Page]:
    yield from _watched(browser, shop, NARROW)


@pytest.fixture
def offline(browser: Browser, shop: Service) -> Iterator[Page]:
    """Open a page whose console may report a lost connection, as browsers do by themselves."""
    yield from _watched(browser, shop, DESKTOP, "ERR_INTERNET_DISCONNECTED")


@pytest.fixture
def refused(browser: Browser, shop: Service) -> Iterator[Page]:
    """Open a page whose console may report a refused request."""
    yield from _watched(browser, shop, DESKTOP, "status of 403")


def _watched(browser: Browser, service: Service, size: ViewportSize, *expected: str) -> Iterator[Page]:
    """Open a page in a session of its own. Any other message in the console than the expected ones fails."""
    host = f"127.0.0.1:{service.port}"
    context = browser.new_context(viewport=size, base_url=f"http://{host}", accept_downloads=True)
    context.set_default_timeout(TIMEOUT)
    page = context.new_page()
    watch = Watch(page, host)
    watch.expected.extend(expected)
    yield page
    context.close()
    assert watch.faults == []


def _open(page: Page, address: str) -> None:
    page.goto(address)
    page.locator(SETTLED).first.wait_for(state="attached")


def _remove_first_item(page: Page) -> str:
    """Open the window for the first item of the newest basket; returns the item's name."""
    item = page.locator(".items li").first
    name = item.locator(".name").inner_text()
    item.get_by_role("button").click()
    return name


def _confirm(page: Page) -> Receipt:
    """Wait for the preview, confirm, see that it came as previewed, and download the receipt."""
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name=re.compile(r"will be erased\.$"))).to_be_visible()
    previewed = dialog.get_by_role("region", name="Afterwards").locator(".name").all_inner_texts()
    dialog.get_by_role("button", name="Forget for good").click()
    expect(dialog.get_by_text("Verified: this person’s model equals one that never saw it")).to_be_visible()
    expect(dialog.locator(".erasure")).to_have_text(re.compile(r"^[\d.,]+ ms$"))
    expect(dialog.get_by_role("region", name="Before").locator("li").first).to_be_visible()
    assert dialog.get_by_role("region", name="After", exact=True).locator(".name").all_inner_texts() == previewed
    expect(dialog.get_by_text("Exactly as previewed.")).to_be_visible()
    return _receipts(page)[0]


def _receipts(page: Page) -> list[Receipt]:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=re.compile("^Download .*receipt")).click()
    return _read(waiting.value)


def _read(download: Download) -> list[Receipt]:
    text = Path(download.path()).read_text(encoding="utf-8")
    if download.suggested_filename.endswith(".ndjson"):
        return [Receipt.from_json(line) for line in text.splitlines()]
    return [Receipt.from_json(text)]


def _is_genuine(shop: Service, receipt: Receipt) -> bool:
    """Return whether a receipt and all before it are a valid chain: signatures and links."""
    _, body = shop.ask("GET", "/v1/receipts?limit=1000")
    before = [Receipt.from_json(json.dumps(held)) for held in json.loads(body)["receipts"]][: receipt.number - 1]
    return audit([*before, receipt]).ok


def _held(shop: Service, user: object) -> dict[str, list[dict[str, Any]]] | None:
    """Return what is held about a user, without the proof, whose time differs from request to request."""
    status, body = shop.ask("GET", f"/v1/users/{user}")
    return {name: value for name, value in json.loads(body).items() if name != "proof"} if status == 200 else None


# All views ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", VIEWS)
def test_every_view_opens_and_fits_a_phone(phone: Page, address: str) -> None:
    _open(phone, address)
    expect(phone.locator("h1").first).to_be_visible()
    room = phone.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert room[0] <= room[1]
    unnamed = phone.evaluate(
        "[...document.querySelectorAll('input, textarea, select')].filter((control) =>"
        " !control.labels.length && !control.ariaLabel).length"
    )
    assert unnamed == 0


def test_files_are_served_with_headers_and_kept_by_their_tag(shop: Service) -> None:
    connection = shop.connect()
    connection.request("GET", "/static/main.js")
    first = connection.getresponse()
    assert first.read()
    assert first.status == 200
    assert first.headers["Content-Type"].startswith("text/javascript")
    assert first.headers["Content-Security-Policy"].startswith("default-src 'self'; frame-ancestors 'none'")
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert first.headers["Referrer-Policy"] == "no-referrer"
    connection.request("GET", "/static/main.js", headers={"If-None-Match": first.headers["ETag"]})
    second = connection.getresponse()
    assert (second.status, second.read()) == (304, b"")
    connection.close()
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/", "/static/none.js"):
        assert shop.ask("GET", path)[0] == 404


def test_ids_never_become_markup(page: Page) -> None:
    _open(page, f"/#/shopper/{HOSTILE.replace(' ', '%20').replace('=', '%3D')}")
    expect(page.locator("h1")).to_have_text(f"Shopper {HOSTILE}")
    expect(page.locator(".items .name").filter(has_text=HOSTILE)).to_be_visible()
    expect(page.locator(".ranks .name").filter(has_text=HOSTILE)).to_be_visible()
    page.get_by_role("button", name=f"Remove {HOSTILE}").click()
    expect(page.get_by_role("dialog").locator("h2")).to_have_text(f"Remove {HOSTILE}")
    expect(page.get_by_role("region", name="Now")).to_be_visible()
    assert page.locator("img:not(.brand img)").count() == 0
    assert "broken" not in page.title()


def test_an_id_in_any_spelling_and_a_number_that_javascript_rounds(page: Page, shop: Service) -> None:
    for spelled in ("170", "%22170%22"):
        _open(page, f"/#/shopper/{spelled}")
        expect(page.locator("h1")).to_have_text("Shopper 170")
    expect(page.locator(".basket h3")).to_have_text(f"Basket {2**60 + 1}")  # it has no date
    page.get_by_role("button", name=f"Remove basket {2**60 + 1}").click()
    assert _confirm(page).scope == "basket"
    assert _held(shop, "%22170%22") is None
    assert _held(shop, "170") is None
    assert _held(shop, "17") is not None


def test_the_page_spells_ids_as_the_service_does(page: Page) -> None:
    texts = ["17", "-5", "ann", "007", "+7", "7.0", '"17"', '"a\\"b"', '"open', "null", "-0", " 17", str(2**53 - 1), ""]
    _open(page, "/")
    spell = """async (texts) => {
        const {formatId, parseId} = await import('/static/lib/ids.js');
        return texts.map((text) => [typeof parseId(text), String(parseId(text)), formatId(text)]);
    }"""
    kinds = {int: "number", str: "string"}
    expected = [[kinds[type(parse_id(text))], str(parse_id(text)), format_id(text)] for text in texts]
    assert page.evaluate(spell, texts) == expected
    large = """async (text) => {
        const {parse, parseId, same, stringify} = await import('/static/lib/ids.js');
        return [stringify(parse(text)), same(parse(text).id, parseId('1152921504606846977'))];
    }"""
    assert page.evaluate(large, '{"id":1152921504606846977}') == ['{"id":1152921504606846977}', True]


# Shopper --------------------------------------------------------------------------------------------------------


def test_choose_a_shopper_and_ask_why(page: Page) -> None:
    _open(page, "/")
    page.get_by_label("Find a shopper").fill("5")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name="Shopper 5")).to_be_visible()
    expect(page.locator(".recommendations .ranks li")).to_have_count(10)
    page.get_by_role("button", name="Why am I seeing").first.click()
    reasons = page.locator(".reasons").first
    expect(reasons).to_contain_text(re.compile(r"You bought it in \d+ baskets?: that is \d+ % of the reason"))
    expect(reasons).to_contain_text(re.compile(r"(None|\d+) of the 20 most similar shoppers buys? it"))
    expect(reasons.locator(".shares li").first).to_be_visible()
    page.get_by_label("only what I have not bought before").check()
    page.get_by_role("button", name="Why am I seeing").first.click()
    expect(page.locator(".reasons").first).to_contain_text("You have not bought it.")


@pytest.mark.parametrize(("readily", "least", "most"), [("more", 1.2, 1e9), ("less", 0.0, 1 / 1.2)])
def test_why_says_whether_people_buy_it_again(
    page: Page, shop: Service, readily: str, least: float, most: float
) -> None:
    user, name = next(
        (user, entry["name"])
        for user in range(1, 100)
        for entry in json.loads(shop.ask("GET", f"/v1/users/{user}/recommendations?explain=true")[1])["recommendations"]
        if entry["explanation"]["baskets"] and least <= entry["explanation"]["factor"] <= most
    )
    _open(page, f"/#/shopper/{user}")
    page.get_by_role("button", name=f"Why am I seeing {name}?", exact=True).click()
    sentence = f"People here buy this again {readily} readily than most things."
    expect(page.locator(".reasons").filter(has_text="that is")).to_contain_text(sentence)


def _recommended(page: Page) -> list[str]:
    """Return the names of the recommended items, once they are shown."""
    page.locator(".recommendations .ranks li").first.wait_for()
    return page.locator(".recommendations .ranks .name").all_inner_texts()


def test_choose_a_category(page: Page, shop: Service) -> None:
    _open(page, "/#/shopper/5")
    everything = _recommended(page)
    category = page.get_by_label("Category", exact=True)
    _, body = shop.ask("GET", "/v1/categories")
    assert category.locator("option").count() == 1 + len(json.loads(body)["categories"])
    wanted = category.locator("option").nth(3).get_attribute("value")
    assert wanted is not None
    category.select_option(wanted)
    expect(page.locator(".recommendations .ranks .name")).not_to_have_text(everything)
    _, body = shop.ask("GET", f"/v1/users/5/recommendations?category={quote(wanted)}")
    names = [entry["name"] for entry in json.loads(body)["recommendations"]]
    assert names
    assert [name.lower() for name in _recommended(page)] == [name.lower() for name in names]
    category.select_option("")
    expect(page.locator(".recommendations .ranks .name")).to_have_text(everything)


def test_a_cart_changes_the_recommendations_as_it_fills(page: Page, shop: Service) -> None:
    digest = _held(shop, 5)
    _open(page, "/#/shopper/5")
    before = _recommended(page)
    cart = page.get_by_role("list", name="In my cart")
    expect(cart).to_be_hidden()
    for count in (1, 2, 3):
        first = page.locator(".recommendations .ranks li").first
        name = first.locator(".name").inner_text()
        first.get_by_role("button", name=f"Put {name} into my cart").click()
        expect(cart.locator("li")).to_have_count(count)
        expect(page.locator(".recommendations .ranks .name", has_text=name)).to_have_count(0)
        expect(cart.get_by_role("button", name=f"Take {name} out")).to_be_focused()
    carted = cart.locator(".name").all_inner_texts()
    assert carted[0] == before[0]
    expect(page.locator(".recommendations .ranks li")).to_have_count(10)
    assert _recommended(page) != [name for name in before if name not in carted]
    page.get_by_role("button", name="Why am I seeing").first.click()
    expect(page.locator(".reasons").first).to_contain_text("These are the reasons without your cart.")
    page.reload()
    expect(cart.locator(".name")).to_have_text(carted)
    expect(page.locator(".recommendations .ranks li")).to_have_count(10)
    assert not {*_recommended(page)} & {*carted}
    for name in carted:
        cart.get_by_role("button", name=f"Take {name} out").click()
    expect(cart).to_be_hidden()
    expect(page.locator(".recommendations .ranks .name")).to_have_text(before)
    assert _held(shop, 5) == digest


def test_somebody_new_with_a_cart(page: Page) -> None:
    _open(page, "/#/shopper/nobody")
    expect(page.get_by_role("heading", name="What most shoppers buy")).to_be_visible()
    page.get_by_role("button", name="into my cart").first.click()
    expect(page.get_by_role("heading", name="For your next basket")).to_be_visible()
    expect(page.locator(".recommendations .ranks .strength").first).to_be_visible()


def test_a_cart_is_of_one_shopper_and_ends_with_the_session(page: Page) -> None:
    _open(page, "/#/shopper/5")
    page.get_by_role("button", name="into my cart").first.click()
    cart = page.get_by_role("list", name="In my cart")
    expect(cart.locator("li")).to_have_count(1)
    page.goto("/#/shopper/7")
    expect(page.get_by_role("heading", name="Shopper 7")).to_be_visible()
    expect(cart).to_be_hidden()
    page.goto("/#/shopper/5")
    expect(cart.locator("li")).to_have_count(1)
    page.evaluate("import('/static/lib/session.js').then((session) => session.signOut())")
    page.reload()
    expect(page.get_by_role("heading", name="Shopper 5")).to_be_visible()
    expect(cart).to_be_hidden()


def test_an_item_is_suppressed_in_one_tap_and_the_page_says_that_this_is_stored(page: Page, shop: Service) -> None:
    _open(page, "/#/shopper/115")
    line = page.locator(".recommendations .ranks li").first
    name = line.locator(".name").inner_text()
    never = line.get_by_role("button", name=f"Don’t recommend {name} again", exact=True)
    assert "This stores that wish, until you undo it." in (never.get_attribute("title") or "")
    never.click()
    expect(line).to_contain_text(f"{name} will not be recommended again. This wish is stored until you undo it.")
    assert _suppressed(shop, 115) == 1
    line.get_by_role("button", name="Undo").click()
    expect(line.locator(".name")).to_have_text(name)
    assert _suppressed(shop, 115) == 0
    line.get_by_role("button", name="Why am I seeing").click()
    reasons = line.locator(".reasons")
    expect(reasons).to_contain_text("This stores that wish, until you undo it.")
    reasons.get_by_role("button", name="Don’t recommend this again").click()
    expect(line.get_by_role("button", name="Undo")).to_be_visible()
    assert _suppressed(shop, 115) == 1
    page.reload()
    expect(page.locator(".suppressed")).to_contain_text(name)
    assert name not in _recommended(page)


def test_an_item_that_was_never_bought_is_not_offered_for_removal(page: Page) -> None:
    _open(page, "/#/shopper/5")
    page.get_by_role("button", name="Why am I seeing").first.click()
    expect(page.get_by_role("button", name="Remove it from my history")).to_have_count(1)
    page.get_by_label("only what I have not bought before").check()
    expect(page.locator(".recommendations .reasons:not([hidden])")).to_have_count(0)
    page.get_by_role("button", name="Why am I seeing").first.click()
    expect(page.locator(".reasons").first).to_contain_text("You have not bought it.")
    expect(page.get_by_role("button", name="Remove it from my history")).to_have_count(0)


def test_a_preview_begins_with_what_will_be_erased(page: Page, shop: Service) -> None:
    held = _held(shop, 116)
    assert held is not None
    _open(page, "/#/shopper/116")
    _remove_first_item(page)
    dialog = page.get_by_role("dialog")
    outlook = dialog.locator(".outlook")
    expect(outlook.locator("h3")).to_have_text("One purchase will be erased.")
    expect(outlook.locator("p").first).to_have_text(
        re.compile(r"^(The top ten stays the same|In the top ten: ).*Nothing has been forgotten yet\.$")
    )
    first = outlook.evaluate("node => node.firstElementChild.tagName")
    assert first == "H3"
    dialog.get_by_role("button", name="Keep it").click()
    page.get_by_role("button", name="Remove everything").click()
    purchases, baskets = sum(len(basket["items"]) for basket in held["baskets"]), len(held["baskets"])
    expect(outlook.locator("h3")).to_have_text(
        f"{purchases} purchases, {baskets} whole baskets, the customer record will be erased."
    )
    dialog.get_by_role("button", name="Forget for good").click()
    expect(dialog.locator(".facts")).to_contain_text(
        f"{purchases} purchases, {baskets} whole baskets, the customer record removed"
    )
    expect(dialog).to_contain_text(NOTHING_HELD.format("person any more"))
    dialog.get_by_role("button", name="Done").click()
    expect(page.locator(".notice")).to_have_text(NOTHING_HELD.format("shopper"))
    page.goto("/#/officer/customers/116")
    expect(page.locator(".notice")).to_have_text(NOTHING_HELD.format("customer"))


def test_baskets_are_newest_first_and_paged(page: Page, shop: Service) -> None:
    held = _held(shop, 7)
    assert held is not None
    _open(page, "/#/shopper/7")
    newest = [str(basket["basket"]) for basket in reversed(held["baskets"])]
    expect(page.locator(".basket")).to_have_count(8)
    page.get_by_role("button", name=re.compile("^Show 8 older")).click()
    expect(page.locator(".basket")).to_have_count(16)
    shown = page.locator(".basket header .muted").all_inner_texts()
    assert shown == [f"basket {basket}" for basket in newest[:16]]
    name = page.locator(".items .name").last.inner_text()
    page.get_by_placeholder("Find a product").fill(name)
    expect(page.locator(".basket").filter(has_not_text=name)).to_have_count(0)
    expect(page.locator(".basket").first).to_be_visible()


def test_forget_an_item_of_a_basket(page: Page, shop: Service) -> None:
    before = _purchases(shop, 11)
    _open(page, "/#/shopper/11")
    expect(page.locator(".summary")).to_contain_text(f"{before} purchases")
    _remove_first_item(page)
    receipt = _confirm(page)
    assert (receipt.scope, receipt.purchases, receipt.verified) == ("item of a basket", 1, True)
    assert _is_genuine(shop, receipt)
    assert not _is_genuine(shop, msgspec.structs.replace(receipt, purchases=0))
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".summary")).to_contain_text(f"{before - 1} purchases")
    expect(page.get_by_role("heading", name="Shopper 11")).to_be_focused()
    assert _purchases(shop, 11) == before - 1


def _purchases(shop: Service, user: int) -> int:
    held = _held(shop, user)
    assert held is not None
    return sum(len(basket["items"]) for basket in held["baskets"])


def test_forget_an_item_everywhere_marks_what_moved(page: Page, shop: Service) -> None:
    _open(page, "/#/shopper/12")
    name = page.locator(".recommendations .name").first.inner_text()
    page.get_by_role("button", name="Why am I seeing").first.click()
    page.get_by_role("button", name="Remove it from my history").click()
    expect(page.get_by_role("radio")).to_have_count(2)
    receipt = _confirm(page)
    assert receipt.scope == "item"
    before, after = (page.get_by_role("region", name=name, exact=True) for name in ("Before", "After"))
    expect(before.locator("li").first).to_contain_text(name)
    expect(after.get_by_text(re.compile(r"^(up|down) \d+$|^new$")).first).to_be_visible()
    held = _held(shop, 12)
    assert held is not None
    assert name not in json.dumps(held)


def test_what_was_removed_does_not_come_back(page: Page, shop: Service) -> None:
    """Similar shoppers buy it too, so it would be recommended as something new."""
    _open(page, "/#/shopper/21")
    name = page.locator(".recommendations .name").first.inner_text()
    page.get_by_role("button", name="Why am I seeing").first.click()
    page.get_by_role("button", name="Remove it from my history").click()
    _confirm(page)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This stores that wish, until you undo it.")
    dialog.get_by_role("button", name="Don’t recommend this again").click()
    expect(page.get_by_role("dialog")).to_contain_text("will not be recommended again")
    dialog.get_by_role("button", name="Undo").click()
    expect(dialog.get_by_role("button", name="Don’t recommend this again")).to_be_visible()
    assert _suppressed(shop, 21) == 0
    dialog.get_by_role("button", name="Don’t recommend this again").click()
    expect(dialog.get_by_role("button", name="Undo")).to_be_visible()
    assert _suppressed(shop, 21) == 1
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".suppressed")).to_contain_text(name)
    expect(page.locator(".recommendations .ranks li").first).to_be_visible()
    expect(page.locator(".recommendations .ranks").get_by_text(name, exact=True)).to_have_count(0)
    page.get_by_role("button", name=f"Recommend {name} again").click()
    expect(page.locator(".suppressed")).to_have_count(0)
    assert _suppressed(shop, 21) == 0


def _suppressed(shop: Service, user: int) -> int:
    held = _held(shop, user)
    assert held is not None
    return len(held["suppressed"])


def test_nothing_can_be_confirmed_before_its_preview_is_there(page: Page, shop: Service) -> None:
    held = _held(shop, 16)
    late: list[Route] = []
    page.route("**/preview", lambda route: late.append(route))
    _open(page, "/#/shopper/16")
    _remove_first_item(page)
    confirm = page.get_by_role("button", name="Forget for good")
    expect(confirm).to_be_disabled()
    _until(page, lambda: len(late) == 1)
    late.pop().continue_()
    expect(confirm).to_be_enabled()
    page.get_by_role("radio").last.check()
    expect(confirm).to_be_disabled()
    _until(page, lambda: len(late) == 1)
    late.pop().continue_()
    expect(confirm).to_be_enabled()
    assert _held(shop, 16) == held


def _until(page: Page, condition: Callable[[], bool]) -> None:
    """Let the page go on until a condition holds."""
    for _ in range(300):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it did not happen")


def test_a_lost_connection_can_be_tried_again(offline: Page, shop: Service) -> None:
    _open(offline, "/#/shopper/18")
    offline.context.set_offline(True)
    _remove_first_item(offline)
    expect(offline.get_by_role("dialog")).to_contain_text("Connection lost")
    expect(offline.get_by_role("button", name="Forget for good")).to_be_disabled()
    offline.context.set_offline(False)
    offline.get_by_role("button", name="Try again").click()
    expect(offline.get_by_role("button", name="Forget for good")).to_be_enabled()
    before = _purchases(shop, 18)
    offline.context.set_offline(True)
    offline.get_by_role("button", name="Forget for good").click()
    expect(offline.get_by_text("It may or may not have been forgotten.")).to_be_visible()
    assert _purchases(shop, 18) == before
    offline.context.set_offline(False)
    offline.get_by_role("button", name="Try again").click()
    expect(
        offline.get_by_role("dialog").get_by_text("Verified: this person’s model equals one that never")
    ).to_be_visible()
    assert _purchases(shop, 18) == before - 1
    offline.context.set_offline(True)
    offline.goto("/#/officer/receipts")
    expect(offline.get_by_role("main").get_by_role("alert")).to_be_visible()
    offline.context.set_offline(False)
    offline.get_by_role("button", name="Try again").click()
    expect(offline.locator("td").first).to_be_visible()
    for item in range(1, 28):
        shop.ask("DELETE", f"/v1/users/41/items/{item}")
    offline.get_by_role("link", name="Retention").click()
    offline.get_by_role("link", name="Receipts").click()
    offline.get_by_role("button", name="Older").wait_for()
    offline.context.set_offline(True)
    offline.get_by_role("button", name="Older").click()
    expect(offline.get_by_role("alert")).to_contain_text("Connection lost")  # on every view


def test_a_connection_lost_after_the_forget(offline: Page, shop: Service) -> None:
    before = _purchases(shop, 117)
    offline.route("**/verify", lambda route: route.abort("internetdisconnected"))
    _open(offline, "/#/shopper/117")
    _remove_first_item(offline)
    offline.get_by_role("button", name="Forget for good").click()
    expect(offline.get_by_role("dialog")).to_contain_text(
        "It has been forgotten. Only the comparison of before and after is missing."
    )
    assert _purchases(shop, 117) == before - 1
    assert _is_genuine(shop, _receipts(offline)[0])


def test_a_refused_forget_says_that_nothing_was_forgotten(refused: Page, shop: Service) -> None:
    held = _held(shop, 118)
    error = {"error": {"code": "forbidden", "message": "this key may not forget"}}
    _open(refused, "/#/shopper/118")
    refused.route(
        "**/items/*",
        lambda route: route.fulfill(status=403, json=error) if route.request.method == "DELETE" else route.continue_(),
    )
    _remove_first_item(refused)
    refused.get_by_role("button", name="Forget for good").click()
    expect(refused.get_by_role("dialog").get_by_text("Nothing has been forgotten.", exact=True)).to_be_visible()
    assert _held(shop, 118) == held


def test_sensitive_categories_come_first_and_are_marked(page: Page) -> None:
    _open(page, "/#/shopper/37")
    page.locator(".chip.more").click()
    chips = page.locator(".chip").all()
    marked = [chip.locator("span").nth(1).inner_text() for chip in chips if chip.locator(".sensitive").count()]
    assert set(marked) == {"Intimate", "Health", "Alcohol"}
    assert [chip.locator("span").nth(1).inner_text() for chip in chips[:3]] == marked
    assert len(chips) > 8


def test_a_phone_shows_recommendations_first_and_one_tap_leads_to_removing_a_category(phone: Page) -> None:
    _open(phone, "/#/shopper/7")
    expect(phone.locator(".recommendations .ranks li").first).to_be_in_viewport(ratio=1)
    tops = [phone.locator(each).evaluate("node => node.getBoundingClientRect().top") for each in PANELS]
    assert tops == sorted(tops)
    phone.get_by_role("button", name="My purchases, and removing them").click()
    expect(phone.locator(".chip").first).to_be_in_viewport(ratio=1)


def test_rows_break_between_words_on_a_phone(phone: Page) -> None:
    _open(phone, "/#/shopper/7")
    phone.locator(".recommendations .ranks li").nth(9).wait_for()
    broken = phone.evaluate(
        """() => [...document.querySelectorAll('.ranks .name, .items .name')].filter((node) => {
            const word = document.createElement('span');
            word.style.cssText = 'position: absolute; white-space: nowrap; font: ' + getComputedStyle(node).font;
            document.body.append(word);
            const widest = Math.max(...node.textContent.split(/\\s+/).map((text) => {
                word.textContent = text;
                return word.getBoundingClientRect().width;
            }));
            word.remove();
            return widest > node.getBoundingClientRect().width + 1;
        }).map((node) => node.textContent)"""
    )
    assert broken == []
    name, bar = (phone.locator(f".ranks li:first-child {part}").bounding_box() for part in (".name", ".strength"))
    assert name is not None
    assert bar is not None
    assert bar["y"] >= name["y"] + name["height"]


def test_nothing_is_forgotten_before_it_is_confirmed(page: Page, shop: Service) -> None:
    held = _held(shop, 13)
    _open(page, "/#/shopper/13")
    _remove_first_item(page)
    for choice in page.get_by_role("radio").all():
        choice.check()
        expect(page.get_by_role("region", name="Afterwards")).to_be_visible()
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert _held(shop, 13) == held


def test_forget_a_basket_a_category_and_everything(page: Page, shop: Service) -> None:
    _open(page, "/#/shopper/14")
    page.get_by_role("button", name="Remove the basket of").first.click()
    assert _confirm(page).scope == "basket"
    page.get_by_role("button", name="Done").click()
    category = page.locator(".chip").first
    name = category.locator("span").nth(1).inner_text()
    category.click()
    assert _is_genuine(shop, _confirm(page))
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".chip").first).not_to_contain_text(name)
    page.get_by_role("button", name="Remove everything").click()
    receipt = _confirm(page)
    assert (receipt.scope, receipt.users) == ("user", 1)
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_text(NOTHING_HELD.format("shopper"))).to_be_visible()
    assert _held(shop, 14) is None


def test_forget_an_item_with_the_keyboard_alone(page: Page, shop: Service) -> None:
    before = _purchases(shop, 15)
    _open(page, "/#/shopper/15")
    _tab_to(page, r"^Remove .* from the basket of")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Afterwards")).to_be_visible()
    _tab_to(page, "^Forget for good$")
    page.keyboard.press("Space")
    expect(page.get_by_role("heading", name="Forgotten", exact=True)).to_be_focused()
    _tab_to(page, "^Done$")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Shopper 15")).to_be_focused()
    assert _purchases(shop, 15) == before - 1


def _tab_to(page: Page, name: str) -> None:
    """Press the tabulator until a control of this name has the focus, which must be visible."""
    for _ in range(60):
        page.keyboard.press("Tab")
        label, outline = page.evaluate(
            "[document.activeElement.ariaLabel ?? document.activeElement.textContent,"
            " getComputedStyle(document.activeElement).outlineStyle]"
        )
        if re.search(name, label):
            assert outline == "solid"
            return
    raise AssertionError(f"the tabulator does not reach {name}")


# Privacy officer ------------------------------------------------------------------------------------------------


def test_find_a_customer_and_export_everything_held(page: Page, shop: Service) -> None:
    _open(page, "/#/officer")
    found = page.locator(".found a")
    expect(found).to_have_count(3)  # examples, no wall of ids
    search = page.get_by_label("Find a customer")
    search.fill("nobody")
    expect(page.get_by_text("No id begins with “nobody”.")).to_be_visible()
    search.fill("10")
    expect(found).to_have_count(8)
    expect(page.get_by_text("Type more of the id to see others.")).to_be_visible()
    search.fill("108")
    expect(found).to_have_count(1)
    found.click()
    expect(page.get_by_role("heading", name="What Unbasket’s database holds about customer 108")).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export as JSON").click()
    exported = json.loads(Path(waiting.value.path()).read_text(encoding="utf-8"))
    assert verify(json.dumps(exported.pop("proof")))
    assert exported == _held(shop, 108)
    page.get_by_role("button", name="Verify against a retrained model").click()
    expect(page.get_by_text("Verified: bit for bit")).to_be_visible()


def test_a_batch_of_requests_from_a_csv_file(page: Page, shop: Service, tmp_path: Path) -> None:
    held = _held(shop, 22)
    assert held is not None
    basket = held["baskets"][0]["basket"]
    requests = tmp_path / "requests.csv"
    requests.write_text(f'user;basket;item\n21;;\n"22";{basket};\n999;;\n', encoding="utf-8-sig")
    _open(page, "/#/officer/batch")
    page.get_by_label("Choose a file").set_input_files(requests)
    expect(page.get_by_label("or paste its lines")).to_have_value(re.compile("^user;basket"))
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".result tbody tr")).to_have_count(3)
    expect(page.get_by_text("1 of 3 requests will find nothing.")).to_be_visible()
    expect(page.locator(".result tbody tr").last).to_contain_text("not found")
    assert _held(shop, 21) is not None
    page.get_by_role("button", name="Forget all 3 for good").click()
    expect(page.locator(".result .erasure")).to_have_text(re.compile(r"^[\d.,]+ ms$"))
    expect(page.locator(".result .facts")).to_contain_text("2 requests1 found nothing")
    rows = page.locator(".result tbody tr")
    assert [row.locator("td").nth(4).inner_text() for row in rows.all()] == ["yes", "yes", "–"]
    expect(rows.last).to_contain_text("not found")
    receipts = _receipts(page)
    assert [receipt.scope for receipt in receipts] == ["user", "basket", "user"]
    assert [receipt.users for receipt in receipts] == [1, 0, 0]
    assert all(_is_genuine(shop, receipt) for receipt in receipts)
    assert _held(shop, 21) is None


def test_a_batch_that_is_no_csv_is_refused_in_plain_words(page: Page) -> None:
    _open(page, "/#/officer/batch")
    for text, message in [
        ("", "There is nothing to check."),
        ("name\nann", "There is no column “user”."),
        ("user,shop\nann,1", "The column “shop” is not one of"),
        ("user,item\n,milk", "Line 2 names no user."),
        ("user\nann,1", "Line 2 has 2 fields"),
        ("user\n\nann,1", "Line 3 has 2 fields"),
        ('user\nann\n"bob\ncleo', "Line 3 opens a quote that is never closed."),
        ("user\n" + "ann\n" * 1001, "These are 1,001 requests. At most 1,000 can be carried out together"),
    ]:
        page.get_by_label("or paste its lines").fill(text)
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_role("alert")).to_contain_text(message)


def test_a_batch_tells_its_empty_and_its_repeated_lines_by_their_numbers(page: Page, shop: Service) -> None:
    basket = _first_basket(shop, 24)
    _open(page, "/#/officer/batch")
    lines = ["user,basket,item", "23,,", "", f"24,{basket},", "23,,", f"24,{basket},1", '"24",,1', "23,,2", ",,"]
    page.get_by_label("or paste its lines").fill("\n".join([*lines, "25,,", ""]))
    page.get_by_role("button", name="Check").click()
    notes = page.locator(".result .notice li")
    expect(notes).to_have_text(
        [
            "Line 3 is empty and was skipped.",
            "Line 9 is empty and was skipped.",
            "Line 5 is already covered by line 2: it is planned once.",
            "Line 6 is already covered by line 4: it is planned once.",
            "Line 8 is already covered by line 2: it is planned once.",
        ]
    )
    rows = page.locator(".result tbody tr")
    assert [row.locator("td").first.inner_text() for row in rows.all()] == ["2", "4", "7", "10"]
    page.get_by_role("button", name="Forget all 4 for good").click()
    expect(page.locator(".result .erasure")).to_be_visible()
    receipts = _receipts(page)
    assert [receipt.scope for receipt in receipts] == ["user", "basket", "item", "user"]
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Lines and receipts as CSV").click()
    assert waiting.value.suggested_filename.endswith(".csv")
    table = [*csv.reader(Path(waiting.value.path()).read_text(encoding="utf-8").splitlines())]
    whole, part, item, last = (str(receipt.number) for receipt in receipts)
    answers = {"2": whole, "4": part, "5": whole, "6": part, "7": item, "8": whole, "10": last}
    people = {"2": "23", "4": "24", "5": "23", "6": "24", "7": "24", "8": "23", "10": "25"}
    assert table[0] == ["line", "person", "receipt", "secret"]
    assert [row[:3] for row in table[1:]] == [[line, people[line], answers[line]] for line in answers]
    subjects = {str(receipt.number): receipt.subject for receipt in receipts}
    assert all(subject_of(person, bytes.fromhex(secret)) == subjects[number] for _, person, number, secret in table[1:])


def test_a_line_of_the_csv_is_no_formula(page: Page) -> None:
    _open(page, "/")
    write = "async (rows) => (await import('/static/officer/csv.js')).csv(rows)"
    rows = [["line", "person"], [2, "=cmd|' /C calc'!A0"], [3, -17], [4, '@a,"b"'], [5, "+1 2"]]
    expected = 'line,person\r\n2,\'=cmd|\' /C calc\'!A0\r\n3,-17\r\n4,"\'@a,""b"""\r\n5,\'+1 2\r\n'
    assert page.evaluate(write, rows) == expected


def _first_basket(shop: Service, user: int) -> object:
    held = _held(shop, user)
    assert held is not None
    return held["baskets"][0]["basket"]


def test_the_prefilled_rule_is_harmless_and_categories_are_picked(page: Page, shop: Service) -> None:
    _open(page, "/#/officer/retention")
    page.get_by_role("button", name="Dry run").click()
    expect(page.get_by_text("There is nothing to forget.")).to_be_visible()
    expect(page.get_by_role("button", name="Forget these")).to_have_count(0)
    names = [entry["category"] for entry in json.loads(shop.ask("GET", "/v1/categories")[1])["categories"]]
    picker = page.get_by_label("Category")
    expect(picker.locator("option")).to_have_count(len(names))
    assert picker.locator("option").evaluate_all("all => all.map((one) => one.value)") == names
    picker.select_option("Dairy")
    page.get_by_role("button", name="Add a rule for it").click()
    rules = page.get_by_label("Rules in TOML")
    expect(rules).to_have_value(re.compile(r'\[\[rule\]\]\ncategory = "Dairy"\nolder_than_days = 730\n'))
    assert "users = []" not in rules.input_value()
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator(".result tbody tr")).to_have_count(2)


def test_a_large_share_of_the_shop_must_be_typed(page: Page, shop: Service) -> None:
    before = shop.ask("GET", "/v1/users?limit=1000")[1]
    _open(page, "/#/officer/retention")
    page.get_by_label("Rules in TOML").fill("[[rule]]\nolder_than_days = 1\n")
    page.get_by_role("button", name="Dry run").click()
    share = page.locator(".result strong")
    expect(share).to_have_text(re.compile(r"^This is (more than 99|\d+) % of your data\.$"))
    page.get_by_role("button", name="Forget these").click()
    dialog = page.get_by_role("dialog")
    confirm = dialog.get_by_role("button", name="Forget for good")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill("11 %")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill(share.inner_text().removeprefix("This is ").removesuffix(" of your data."))
    expect(confirm).to_be_enabled()
    dialog.get_by_role("button", name="Keep them").click()
    assert shop.ask("GET", "/v1/users?limit=1000")[1] == before


def test_retention_rules_are_tried_and_then_run(page: Page, shop: Service) -> None:
    _open(page, "/#/officer/retention")
    rules = page.get_by_label("Rules in TOML")
    rules.fill('[[rule]]\nname = "no bread"\ncategory = "Bakery"\nusers = [30, 31]\n')
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator(".result tbody td").first).to_have_text("no bread")
    expect(page.get_by_text("Nothing has been changed yet.")).to_be_visible()
    assert "Bakery" in json.dumps(_held(shop, 30))
    page.get_by_role("button", name="Forget these").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget for good").click()
    expect(page.get_by_role("heading", name="Forgotten")).to_be_visible()
    assert "Bakery" not in json.dumps([_held(shop, 30), _held(shop, 31)])


def test_receipts_are_listed_verified_and_downloaded(page: Page, shop: Service) -> None:
    for item in range(1, 28):
        shop.ask("DELETE", f"/v1/users/40/items/{item}")
    _open(page, "/#/officer/receipts")
    expect(page.locator("tbody tr")).to_have_count(25)
    newest = int(page.locator("tbody td").first.inner_text())
    assert newest >= 27
    expect(page.locator("tbody tr").first).to_contain_text(" ms")
    page.get_by_role("button", name="Older").click()
    expect(page.locator("tbody td").first).to_have_text(str(newest - 25))
    page.get_by_role("button", name="Newer").click()
    expect(page.locator("tbody td").first).to_have_text(str(newest))
    page.get_by_role("button", name="Verify all").click()
    expect(page.get_by_text("every signature is valid, and none before the newest is missing")).to_be_visible()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download all").click()
    outcome = audit(_read(waiting.value))
    assert outcome.ok
    assert outcome.receipts >= 27


@pytest.mark.parametrize("number", [1, 3])
def test_everything_downloaded_passes_the_command_line_and_the_page(page: Page, tmp_path: Path, number: int) -> None:
    """A receipt of one forget, those of a category, of a batch, one of the list, and all."""
    first = 70 + 10 * number
    files = [
        _downloaded(page, tmp_path, *way)
        for way in (
            (f"/#/shopper/{first}", _forget_first_item, "Download receipt"),
            (f"/#/shopper/{first + 1}", _forget_first_category, re.compile("^Download .*receipt")),
            ("/#/officer/batch", lambda page: _forget_all(page, range(first + 2, first + 2 + number)), "Download "),
            ("/#/officer/receipts", lambda _: None, re.compile("^Download receipt")),
            ("/#/officer/receipts", lambda _: None, "Download all"),
        )
    ]
    for file in files:
        assert ", 0 faults." in run("receipts", "verify", str(file))
        page.get_by_label("To verify a file").set_input_files(file)
        expect(page.locator(".notice.good strong")).to_have_text(f"{file.name} is genuine")


def _downloaded(
    page: Page, folder: Path, address: str, act: Callable[[Page], object], button: str | re.Pattern[str]
) -> Path:
    _open(page, address)
    act(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name=button).first.click()
    file = folder / f"{len(list(folder.iterdir()))}-{waiting.value.suggested_filename}"
    waiting.value.save_as(file)
    return file


def _forget_first_item(page: Page) -> None:
    _remove_first_item(page)
    page.get_by_role("button", name="Forget for good").click()


def _forget_first_category(page: Page) -> None:
    page.locator(".chip").first.click()
    page.get_by_role("button", name="Forget for good").click()


def _forget_all(page: Page, users: Iterable[int]) -> None:
    page.get_by_label("or paste its lines").fill("\n".join(["user", *map(str, users)]))
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name=re.compile("^Forget .* for good")).click()


def test_proofs_are_downloaded_and_verified(page: Page, shop: Service, tmp_path: Path) -> None:
    """By the verifier, which has nothing but the file, and by the service."""
    shop.ask("DELETE", "/v1/users/41")
    proofs = {
        "This is all": _downloaded(page, tmp_path, "/#/officer/customers/108", lambda _: None, "Download proof"),
        "The shop has committed to hold nothing about '41'": _downloaded(
            page, tmp_path, "/#/officer", lambda page: page.goto("/#/officer/customers/41"), "Download proof of absence"
        ),
        "Receipt ": _downloaded(
            page, tmp_path, "/#/officer/receipts", lambda _: None, re.compile("^Download the proof of receipt")
        ),
        "The checkpoint is as": _downloaded(
            page, tmp_path, "/#/officer/receipts", lambda _: None, "Download checkpoint"
        ),
    }
    for said, file in proofs.items():
        summary = verify(file.read_text(encoding="utf-8"))
        assert summary.startswith(said)
        page.get_by_label("To verify a file").set_input_files(file)
        expect(page.locator(".notice.good strong")).to_have_text(f"{file.name} is genuine")
        expect(page.locator(".notice.good")).to_contain_text(summary)
        expect(page.locator(".notice.good")).to_contain_text("This service has checked it")
    forged = tmp_path / "forged.json"
    forged.write_text(proofs["Receipt "].read_text(encoding="utf-8").replace('"verified": true', '"verified": false'))
    page.get_by_label("To verify a file").set_input_files(forged)
    expect(page.locator(".notice.bad")).to_contain_text("forged.json failed the verification")


def test_the_secret_of_a_receipt_is_shown_once(page: Page) -> None:
    _open(page, "/#/shopper/43")
    _remove_first_item(page)
    receipt = _confirm(page)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("It proves whom this receipt is about, and is stored nowhere.")).to_be_visible()
    secret = dialog.locator(".receipt code.token").inner_text()
    assert subject_of(43, bytes.fromhex(secret)) == receipt.subject


def test_a_file_that_is_dropped_onto_the_page_is_verified_in_words(page: Page, shop: Service) -> None:
    for item in range(1, 10):
        shop.ask("DELETE", f"/v1/users/42/items/{item}")
    held = json.loads(shop.ask("GET", "/v1/receipts?limit=9")[1])["receipts"]
    _open(page, "/#/officer/receipts")
    proved = page.locator(".proved li")
    _drop(page, json.dumps(held[3:9]))
    expect(proved).to_have_text(
        [
            "Signatures valid: nothing was changed after signing.",
            "Receipts 4 to 9 are exactly as the shop holds them.",
            "Receipts 4 to 9 are chained: none in between was taken out.",
            "Receipts 1 to 3 are not in this file, which proves nothing about them.",
        ]
    )
    _drop(page, json.dumps(held[1], indent=2))
    expect(proved.last).to_have_text("Receipt 1 is not in this file, which proves nothing about it.")
    _drop(page, "\n".join(json.dumps(receipt) for receipt in (held[0], held[1] | {"purchases": 99})))
    expect(page.locator(".notice.bad")).to_contain_text("dropped.json failed the verification")
    expect(proved.first).to_have_text("Receipt 2: its signature is not valid: it was changed.")
    _drop(page, "user,item\n")
    expect(page.get_by_role("alert")).to_have_text("Line 1 of this file is not JSON. Is it a file of receipts?")
    _drop(page, " " * 2**23)
    expect(page.get_by_role("alert")).to_contain_text("unbasket receipts verify FILE")


def _drop(page: Page, text: str) -> None:
    """Let go of a file above the heading, as a mouse would."""
    page.evaluate("document.querySelector('.proved')?.parentElement.remove()")
    files = page.evaluate_handle(
        "(text) => { const held = new DataTransfer(); held.items.add(new File([text], 'dropped.json')); return held; }",
        text,
    )
    page.get_by_role("heading", name="Receipts").dispatch_event("drop", {"dataTransfer": files})


# Engineer -------------------------------------------------------------------------------------------------------


def test_live_figures_move(page: Page, shop: Service) -> None:
    _open(page, "/#/engineer")
    for _ in range(30):
        shop.ask("GET", "/v1/users/50/recommendations")
    expect(page.locator(".figures")).to_contain_text("recommendations per second")
    expect(page.locator(".legend li").filter(has_text="p99")).to_have_count(1)
    expect(page.get_by_role("cell", name="GET /v1/users/{user}/recommendations", exact=True)).to_be_visible()
    expect(page.locator(".parameters")).to_contain_text("neighbors k")
    learned = page.locator(".learned")
    expect(learned).to_contain_text(re.compile(r"alpha is 0\.\d{3}, from \d+ customers with two baskets or more"))
    expect(learned.get_by_role("heading", name="Bought again most readily")).to_be_visible()
    rate = page.locator(".figures li").filter(has_text="recommendations per second").locator("strong")
    expect(rate).not_to_have_text("0.0")
    expect(rate).to_have_text("0.0")  # though the load was within the last minute


def test_a_single_point_of_a_chart_is_a_dot(page: Page) -> None:
    bucket = {"recommendations_per_second": 1.0, "events_per_second": 0.0, "p50": None, "p90": None, "p99": None}
    measured = {**bucket, "p50": 0.001, "p90": 0.002, "p99": 0.003}

    def alone(route: Route) -> None:
        answer = route.fetch().json()
        route.fulfill(json={**answer, "buckets": [bucket, measured, bucket, bucket]})

    page.route("**/v1/stats", alone)
    _open(page, "/#/engineer")
    dots = page.locator(".chart circle.dot")
    expect(dots).to_have_count(3)
    box = dots.first.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 4


def test_live_figures_go_on_when_the_connection_is_back(offline: Page) -> None:
    _open(offline, "/#/engineer")
    offline.context.set_offline(True)
    expect(offline.get_by_role("alert")).to_contain_text("Connection lost")
    expect(offline.locator(".chart").first).to_be_visible()  # the last figures stay
    offline.context.set_offline(False)
    expect(offline.get_by_role("alert")).to_have_count(0)


def test_add_a_basket_by_hand_and_watch(page: Page, shop: Service) -> None:
    _open(page, "/#/engineer/try")
    page.get_by_label("Shopper").fill("60")
    for text in ("Oat milk 1 l", "22", "Dragon fruit"):
        page.get_by_label("Item", exact=True).fill(text)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Item", exact=True)).to_have_value("")
    expect(page.locator(".picked li")).to_have_count(3)
    expect(page.locator(".picked li").last).to_contain_text("new to the shop")
    page.get_by_role("button", name="Take Dragon fruit out").click()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="If it is learned")).to_be_visible()
    page.get_by_role("button", name="Learn it").click()
    expect(page.get_by_role("heading", name="Learned as basket")).to_be_visible()
    expect(page.get_by_text("Exactly as previewed.")).to_be_visible()
    held = _held(shop, 60)
    assert held is not None
    assert [item["item"] for item in held["baskets"][-1]["items"]] == ["22", "5"]


def test_similar_users(page: Page) -> None:
    _open(page, "/#/engineer/similar/61")
    expect(page.locator("tbody tr")).to_have_count(20)
    page.locator("tbody a").first.click()
    expect(page.get_by_role("heading", name="Most similar to shopper")).to_be_visible()


def test_the_reference_tries_a_call(page: Page) -> None:
    _open(page, "/docs")
    page.locator(".route").filter(has_text="GET/v1/users/{user}/recommendations").locator("summary").click()
    page.get_by_label("user", exact=True).fill("7")
    page.get_by_label("n", exact=True).fill("3")
    expect(page.get_by_label("curl example")).to_contain_text("/v1/users/7/recommendations?n=3")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text(re.compile(r"^200 OK in \d+ ms$"))).to_be_visible()
    expect(page.locator("pre").filter(has_text='"recommendations"').last).to_contain_text('"score"')


# Signing in, and a shop without data -----------------------------------------------------------------------------


class Guarded(NamedTuple):
    """A service that asks for keys, and a key for each name."""

    service: Service
    keys: dict[str, str]

    def remove(self, name: str) -> None:
        """Take a key back; the service looks at its keys once in a second."""
        run("keys", "remove", name, "--db", str(self.service.log.with_name("shop.db")))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Make a shop without baskets."""
    db = tmp_path_factory.mktemp("guarded") / "shop.db"
    ub.open(db).close()
    roles = {"front-office": "privacy", "temp": "privacy", "machine-room": "admin"}
    keys = {name: run("keys", "add", name, "--role", role, "--db", str(db)).split()[-1] for name, role in roles.items()}
    with running(db) as service:
        yield Guarded(service, keys)


@pytest.fixture
def anonymous(browser: Browser, guarded: Guarded) -> Iterator[Page]:
    """Open a page as an anonymous caller; its console may report the 401."""
    yield from _watched(browser, guarded.service, PHONE, "status of 401")


def _sign_in(page: Page, key: str) -> None:
    page.get_by_label("Your key").fill(key)
    page.get_by_role("dialog").get_by_role("button", name="Sign in").click()


def test_a_wrong_key_does_not_sign_in(anonymous: Page) -> None:
    anonymous.goto("/")
    _sign_in(anonymous, "nonsense")
    expect(anonymous.get_by_role("alert")).to_contain_text("This key is not valid.")
    anonymous.get_by_role("button", name="Cancel").click()
    expect(anonymous.get_by_role("heading", name="You are not signed in")).to_be_visible()
    expect(anonymous.locator("#who")).to_have_text("Sign in")
    assert anonymous.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


def test_the_page_says_who_is_signed_in_and_as_what(anonymous: Page, guarded: Guarded) -> None:
    anonymous.goto("/")
    _sign_in(anonymous, guarded.keys["front-office"])
    expect(anonymous.locator(".identity")).to_have_text("front-office privacy officer")
    expect(anonymous.get_by_role("heading", name="This shop has no baskets yet")).to_be_visible()
    expect(anonymous.get_by_role("link", name="Engineer")).to_be_hidden()
    anonymous.reload()
    expect(anonymous.locator(".identity")).to_contain_text("front-office")
    anonymous.goto("/#/engineer")
    expect(anonymous.get_by_text("It needs a key with the role “admin”.")).to_be_visible()
    anonymous.get_by_role("button", name="Sign out").click()
    expect(anonymous.get_by_role("heading", name="You are not signed in")).to_be_visible()
    anonymous.get_by_role("main").get_by_role("button", name="Sign in").click()
    _sign_in(anonymous, guarded.keys["machine-room"])
    expect(anonymous.locator(".identity")).to_have_text("machine-room administrator")
    expect(anonymous.locator(".chart").first).to_be_visible()


def test_a_key_that_is_removed_ends_the_session(anonymous: Page, guarded: Guarded) -> None:
    anonymous.goto("/")
    _sign_in(anonymous, guarded.keys["temp"])
    expect(anonymous.locator(".identity")).to_contain_text("temp")
    guarded.remove("temp")
    anonymous.wait_for_timeout(1100)
    anonymous.goto("/#/officer/receipts")
    expect(anonymous.get_by_role("dialog")).to_contain_text("Your key is no longer valid.")
    expect(anonymous.locator("#who")).to_have_text("Sign in")


def test_a_customer_signs_in_and_sees_their_own_data_only(anonymous: Page, guarded: Guarded) -> None:
    key = guarded.keys["machine-room"]
    headers = {"Authorization": f"Bearer {key}"}
    guarded.service.ask("PUT", "/v1/users/ann/baskets/1", {"items": ["milk", "tea"]}, **headers)
    anonymous.goto("/#/officer/customers/ann")
    _sign_in(anonymous, key)
    anonymous.get_by_role("button", name="Make a key for this customer").click()
    token = anonymous.locator(".token").inner_text()
    anonymous.get_by_role("button", name="Sign out").click()
    anonymous.get_by_role("main").get_by_role("button", name="Sign in").click()
    _sign_in(anonymous, token)
    expect(anonymous.locator(".identity")).to_have_text("Customer ann own data only")
    anonymous.goto("/#/shopper/bob")  # a customer sees their own data, whatever the address says
    expect(anonymous.get_by_role("heading", name="Shopper ann")).to_be_visible()
    expect(anonymous.get_by_role("link", name="Privacy officer")).to_be_hidden()
    expect(anonymous.locator(".items .tile")).to_have_text(["M", "T"])  # initials: the shop has no catalog
    anonymous.get_by_role("button", name="Remove everything").click()
    dialog = anonymous.get_by_role("dialog")
    dialog.get_by_role("button", name="Forget for good").click()
    expect(dialog.get_by_text("Nothing about you remains, so your key has ended too.")).to_be_visible()
    assert audit(_receipts(anonymous)).ok
    dialog.get_by_role("button", name="Done").click()
    expect(anonymous.get_by_role("dialog")).to_contain_text("Your key is no longer valid.")
