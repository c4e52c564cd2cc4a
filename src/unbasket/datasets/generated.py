"""A generator of a realistic shop, of any size: purchases, and products with categories and made-up brands."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count, islice

import numpy as np
import numpy.typing as npt
import polars as pl

from unbasket.datasets.dataset import Dataset
from unbasket.domain.results import ReadingProgress
from unbasket.errors import DatasetError

# Per category: products, each with the sizes in which it is sold
_PRODUCTS = {
    "Dairy": "Whole milk: 500 ml, 1 l, 2 l; Oat milk: 500 ml, 1 l; Natural yoghurt: 150 g, 500 g, 1 kg; "
    "Strawberry yoghurt: 150 g, 4 x 100 g; Butter: 125 g, 250 g; Gouda: 200 g, 400 g; Mozzarella: 125 g, 3 x 125 g; "
    "Eggs: 6 pcs, 10 pcs; Cream: 200 ml; Feta: 200 g",
    "Bakery": "Rye bread: 500 g, 1 kg; Wholegrain toast: 500 g; Baguette: 250 g; Croissants: 4 pcs; "
    "Rolls: 6 pcs, 10 pcs; Apple cake: 400 g",
    "Fruit and vegetables": "Bananas: 1 kg; Apples: 1 kg, 2 kg; Oranges: 1.5 kg; Lemons: 4 pcs; "
    "Strawberries: 250 g, 500 g; Tomatoes: 500 g, 1 kg; Cucumber: 1 pc; Carrots: 1 kg; Potatoes: 1.5 kg, 2.5 kg; "
    "Onions: 1 kg; Garlic: 3 pcs; Spinach: 200 g; Avocado: 1 pc, 2 pcs",
    "Meat and fish": "Chicken breast: 400 g, 800 g; Minced beef: 400 g; Bacon: 150 g; Salami: 100 g; "
    "Salmon fillet: 250 g; Tuna in oil: 160 g, 3 x 80 g; Fish fingers: 10 pcs, 15 pcs",
    "Pantry": "Spaghetti: 500 g; Penne: 500 g; Basmati rice: 500 g, 1 kg; Flour: 1 kg; Sugar: 1 kg; "
    "Olive oil: 500 ml, 1 l; Chopped tomatoes: 400 g, 4 x 400 g; Red lentils: 500 g; Chickpeas: 400 g; "
    "Muesli: 500 g, 1 kg; Oats: 500 g; Honey: 500 g; Peanut butter: 350 g; Strawberry jam: 340 g",
    "Sweets and snacks": "Milk chocolate: 100 g, 300 g; Dark chocolate: 100 g; Crisps: 175 g; Salted peanuts: 200 g; "
    "Gummy bears: 200 g; Butter biscuits: 200 g; Vanilla ice cream: 500 ml, 1 l",
    "Drinks": "Mineral water: 1 l, 6 x 1.5 l; Orange juice: 1 l; Cola: 500 ml, 1.5 l; Cola zero: 500 ml, 1.5 l; "
    "Ground coffee: 500 g; Coffee beans: 1 kg; Green tea: 20 bags; Black tea: 25 bags, 50 bags",
    "Household": "Toilet paper: 8 rolls, 16 rolls; Kitchen roll: 4 rolls; Washing powder: 20 loads, 40 loads; "
    "Washing-up liquid: 500 ml; Bin bags: 20 pcs; Batteries AA: 4 pcs, 8 pcs",
    "Body care": "Shampoo: 250 ml, 400 ml; Shower gel: 250 ml; Toothpaste: 75 ml, 2 x 75 ml; Deodorant: 50 ml; "
    "Sun cream SPF 50: 200 ml",
    "Pets": "Cat food: 85 g, 12 x 85 g; Cat litter: 10 l; Dog food: 400 g, 6 x 400 g; Dog treats: 150 g",
    "Alcohol": "Lager: 500 ml, 6 x 330 ml; Red wine: 750 ml; White wine: 750 ml; Sparkling wine: 750 ml; "
    "Vodka: 700 ml; Gin: 500 ml, 700 ml",
    "Baby": "Nappies newborn: 28 pcs, 56 pcs; Nappies size 4: 44 pcs, 88 pcs; Baby formula: 800 g; "
    "Carrot puree: 190 g; Baby wipes: 80 pcs, 4 x 80 pcs",
    "Health": "Paracetamol: 20 tablets; Blood glucose test strips: 50 pcs; Nicotine patches: 7 pcs; "
    "Pregnancy test: 1 pc, 2 pcs; Folic acid: 60 tablets; Incontinence pads: 16 pcs; Sleeping aid: 20 tablets; "
    "Antihistamine: 20 tablets",
    "Intimate": "Condoms: 8 pcs, 16 pcs; Lubricant: 100 ml; Tampons: 16 pcs, 32 pcs",
}

# Categories that reveal something about a household, and the share of households that buy from them
SENSITIVE_CATEGORIES = {"Alcohol": 0.5, "Baby": 0.12, "Health": 0.3, "Intimate": 0.35}
_OCCASIONAL_CATEGORIES = {**SENSITIVE_CATEGORIES, "Pets": 0.35}

_SYLLABLES = ("Al", "Be", "Co", "Do", "Fa", "Gri", "Hal", "Jo", "Ka", "Lin", "Mo", "Nor", "Pe", "Ro", "Sol", "Ta")

_OPENED = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())  # a Monday
_WEEK, _DAY, _HOUR = 7 * 86_400, 86_400, 3_600
_FAVORITES = 25
_ZIPF = 0.9
_BLOCK = 10_000  # users generated at a time: bounds the memory, and is the step of the progress
_WEEKDAYS = np.cumsum([0.12, 0.11, 0.12, 0.13, 0.18, 0.24, 0.10])  # Monday to Sunday
_HOURS = np.cumsum([2, 4, 6, 8, 9, 7, 5, 5, 6, 8, 11, 12, 9, 5, 3]) / 100  # 7 to 21 o'clock

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The items on offer, as arrays to draw from."""

    popularity: _Floats  # cumulative, over all items
    everyday: _Ints  # items that every household buys
    everyday_popularity: _Floats  # cumulative, over the everyday items
    occasion: _Ints  # per item: which occasional category it is in, or the number of them for none


def generate(
    users: int = 1_000,
    *,
    seed: int = 0,
    items: int | None = None,
    baskets_per_user: float = 20.0,
    basket_size: float = 8.0,
    repeat_share: float = 0.6,
    weeks: int = 52,
    progress: ReadingProgress | None = None,
) -> Dataset:
    """Generate a shop: the same arguments give the same purchases.

    Items follow a Zipf law of popularity. A user has favorites, which are `repeat_share` of the purchases, and buys
    from occasional categories (alcohol, baby, health and the like) only if their household does. Baskets are spread
    over `weeks` from 1 January 2024, over the opening hours and weekdays of a real shop; their ids increase with time.
    `basket_size` is the average number of picks; an item picked twice is in the basket once. Progress is in users.
    """
    at_least_1 = {"users": users, "weeks": weeks, "baskets_per_user": baskets_per_user, "basket_size": basket_size}
    for name, value in (at_least_1 | ({} if items is None else {"items": items})).items():
        if not value >= 1:
            raise DatasetError(f"{name} must be at least 1, not {value!r}")
    if not 0 <= repeat_share <= 1:
        raise DatasetError(f"repeat_share must be from 0 to 1, not {repeat_share!r}")
    products = _assortment(items)
    roots = np.random.SeedSequence(seed).spawn(1 + -(-users // _BLOCK))
    shelf = _shelf(products, np.random.default_rng(roots[0]))
    blocks, trips = [], 0
    for start, root in zip(range(0, users, _BLOCK), roots[1:], strict=True):
        rng = np.random.default_rng(root)
        size = min(_BLOCK, users - start)
        user, time = _trips(rng, size, baskets_per_user, weeks)
        trip, item = _fill(rng, shelf, user, basket_size, repeat_share)
        blocks.append((start + user, time, trips + trip, item))
        trips += user.size
        if progress is not None:
            progress(start + size, users)
    history = _history(*map(np.concatenate, zip(*blocks, strict=True)))
    notes = f"Generated shop: {users} users, seed {seed}. Time is in seconds since 1970."
    return Dataset("generated", history, items=products, notes=notes)


def _history(user: _Ints, time: _Ints, trip: _Ints, item: _Ints) -> pl.DataFrame:
    """Join the user and time of each trip with the trip and item of each purchase."""
    # basket ids as a till issues them: in order of time over the whole shop
    basket = np.empty_like(time)
    basket[np.argsort(time, kind="stable")] = np.arange(1, time.size + 1)
    return pl.DataFrame({"user": 1 + user[trip], "basket": basket[trip], "item": 1 + item, "time": time[trip]})


def _shelf(products: pl.DataFrame, rng: np.random.Generator) -> _Shelf:
    # ids are in the order of the assortment, so popularity must not be
    weights = np.asarray((1.0 + rng.permutation(products.height)) ** -_ZIPF, dtype=np.float64)
    occasions = {category: number for number, category in enumerate(_OCCASIONAL_CATEGORIES)}
    occasion = np.array([occasions.get(category, len(occasions)) for category in products["category"]])
    everyday = np.flatnonzero(occasion == len(occasions))
    return _Shelf(_cumulative(weights), everyday, _cumulative(weights[everyday]), occasion)


def _cumulative(weights: _Floats) -> _Floats:
    shares: _Floats = np.cumsum(weights) / weights.sum()
    return shares


def _draw(rng: np.random.Generator, cumulative: _Floats, size: int) -> _Ints:
    """Draw indices with the given cumulative probabilities."""
    drawn = np.searchsorted(cumulative, rng.random(size), side="right")
    return np.minimum(drawn, len(cumulative) - 1)  # the last sum may be a hair below 1


def _trips(rng: np.random.Generator, users: int, baskets_per_user: float, weeks: int) -> tuple[_Ints, _Ints]:
    """Return the user (from 0) and the time of each trip, sorted by both."""
    mean = rng.gamma(2.0, (baskets_per_user - 1) / 2.0, users)  # some users come daily, most do not
    user = np.repeat(np.arange(users), 1 + rng.poisson(mean))
    joined = rng.integers(0, max(1, weeks // 2), users)[user]
    week = joined + (rng.random(user.size) * (weeks - joined)).astype(np.int64)
    weekday, hour = _draw(rng, _WEEKDAYS, user.size), 7 + _draw(rng, _HOURS, user.size)
    time = _OPENED + week * _WEEK + weekday * _DAY + hour * _HOUR + rng.integers(0, _HOUR, user.size)
    return user, time[np.lexsort((time, user))]


def _fill(
    rng: np.random.Generator, shelf: _Shelf, user: _Ints, basket_size: float, repeat_share: float
) -> tuple[_Ints, _Ints]:
    """Fill the basket of each trip with favorites and, less often, other items.

    Returns the trip and the item (both from 0) of each purchase, sorted by both.
    """
    users = int(user[-1]) + 1
    shops_for = rng.random((users, len(_OCCASIONAL_CATEGORIES))) < list(_OCCASIONAL_CATEGORIES.values())
    shops_for = np.column_stack([shops_for, np.ones(users, dtype=bool)])
    favorites = _buy(rng, shelf, shops_for, np.repeat(np.arange(users), _FAVORITES))
    trip = np.repeat(np.arange(user.size), 1 + rng.poisson(basket_size - 1, user.size))
    buyer = user[trip]
    item = _buy(rng, shelf, shops_for, buyer)
    again = rng.random(trip.size) < repeat_share
    # squared: the first favorites are bought far more often than the last
    liked = (_FAVORITES * rng.random(trip.size) ** 2).astype(np.int64)
    item[again] = favorites[buyer * _FAVORITES + liked][again]
    # a basket is a set; numpy's unique is ten times slower than a sort here
    key = np.sort(trip * shelf.occasion.size + item)
    key = key[np.diff(key, prepend=-1) > 0]
    return key // shelf.occasion.size, key % shelf.occasion.size


def _buy(rng: np.random.Generator, shelf: _Shelf, shops_for: npt.NDArray[np.bool_], user: _Ints) -> _Ints:
    """Draw one item per element of `user`; an everyday item replaces one that the user never buys."""
    item = _draw(rng, shelf.popularity, user.size)
    never = ~shops_for[user, shelf.occasion[item]]
    item[never] = shelf.everyday[_draw(rng, shelf.everyday_popularity, int(never.sum()))]
    return item


def _assortment(size: int | None = None) -> pl.DataFrame:
    """Return item, name and category of all unbranded products, or of `size` products, with brands as needed."""
    unbranded = list(_unbranded())
    branded = ((f"{brand} {name}", category) for brand in _brands() for name, category in unbranded)
    products = unbranded if size is None else list(islice(chain(unbranded, branded), size))
    frame = pl.DataFrame(products, schema={"name": pl.String, "category": pl.String}, orient="row")
    return frame.select(pl.int_range(1, pl.len() + 1).alias("item"), "name", "category")


def _unbranded() -> Iterator[tuple[str, str]]:
    for category, products in _PRODUCTS.items():
        for product in products.split("; "):
            name, _, sizes = product.partition(": ")
            for size in sizes.split(", "):
                yield f"{name} {size}", category


def _brands() -> Iterator[str]:
    """Yield an endless series of names: Alal, Albe, Alco, and so on."""
    for number in count(len(_SYLLABLES)):
        syllables = []
        while number:
            number, digit = divmod(number, len(_SYLLABLES))
            syllables.append(_SYLLABLES[digit])
        yield "".join(syllables).capitalize()
