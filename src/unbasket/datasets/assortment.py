"""The assortment of the generated shop: products, their categories and made-up brands."""

from collections.abc import Iterator
from itertools import chain, count, islice

import polars as pl

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
OCCASIONAL_CATEGORIES = {**SENSITIVE_CATEGORIES, "Pets": 0.35}

_SYLLABLES = ("Al", "Be", "Co", "Do", "Fa", "Gri", "Hal", "Jo", "Ka", "Lin", "Mo", "Nor", "Pe", "Ro", "Sol", "Ta")


def assortment(size: int | None = None) -> pl.DataFrame:
    """Return item, name and category of all unbranded products, or of `size` products, with brands as needed."""
    unbranded = [(f"{name} {sold}", category) for name, sold, category in _sold()]
    branded = ((f"{brand} {name}", category) for brand in _brands() for name, category in unbranded)
    products = unbranded if size is None else list(islice(chain(unbranded, branded), size))
    return pl.DataFrame(
        {
            "item": range(1, len(products) + 1),
            "name": [name for name, _ in products],
            "category": [category for _, category in products],
        },
        schema={"item": pl.Int64, "name": pl.String, "category": pl.String},
    )


def _sold() -> Iterator[tuple[str, str, str]]:
    for category, products in _PRODUCTS.items():
        for product in products.split("; "):
            name, _, sizes = product.partition(": ")
            for sold in sizes.split(", "):
                yield name, sold, category


def _brands() -> Iterator[str]:
    """Yield an endless series of names: Alal, Albe, Alco, and so on."""
    for number in count(len(_SYLLABLES)):
        syllables = []
        while number:
            number, digit = divmod(number, len(_SYLLABLES))
            syllables.append(_SYLLABLES[digit])
        yield "".join(syllables).capitalize()
