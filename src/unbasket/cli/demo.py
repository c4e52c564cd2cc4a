"""`unbasket demo`: a shop in memory, a shopper who takes a sensitive item out, and the proof that it is gone."""

from rich.table import Table

from unbasket.cli.terminal import console
from unbasket.datasets import SENSITIVE_CATEGORIES, generate
from unbasket.errors import InvalidRequestError
from unbasket.ids import Id
from unbasket.params import Params
from unbasket.recommender import Recommender
from unbasket.results import Recommendation


def demo(users: int = 2000, seed: int = 0) -> None:
    """Load a generated shop, recommend, forget a sensitive item, and show that it is gone."""
    console.print("[bold]1. A shop[/] (the first run compiles the kernels once, for about half a minute)")
    with console.status("loading"):
        shop = generate(users=users, seed=seed)
        rec = Recommender(Params(neighbors=100)).fit(shop.history)
    assert shop.items is not None
    names = dict(shop.items.select("item", "name").iter_rows())
    categories = dict(shop.items.select("item", "category").iter_rows())
    console.print(f"   {len(rec):,} shoppers, {len(rec.items()):,} items, digest {rec.digest()[:16]}...\n")

    user, item = _shopper_with_sensitive_item(rec, categories)
    console.print(f"[bold]2. Shopper {user}[/] bought {names[item]!r} ({categories[item]}), and is shown it again:")
    before = rec.recommend(user)
    why = rec.explain(user, item)
    own = sum(share.share for share in why.baskets)
    console.print(
        f"   its score {why.score:.3f} = {own:.3f} from {len(why.baskets)} own baskets "
        f"+ {why.neighbors_share:.3f} from {why.neighbors_with_item} of {why.neighbors} similar shoppers\n"
    )

    console.print(f"[bold]3. 'Forget {names[item]} in all my baskets'[/]")
    gone = rec.forget(user, item=item)
    console.print(f"   removed {gone.purchases} purchases; {gone.baskets} baskets vanished with them\n")
    console.print(_side_by_side(before, rec.recommend(user), names))

    console.print("[bold]4. The proof[/]")
    with console.status("retraining from what remains"):
        report = rec.verify()
    console.print(f"   compared with a model that never saw it, {report.users:,} users, bit by bit: ", end="")
    console.print("[green]identical[/]" if report.ok else f"[red]different: {report.mismatches}[/]")


def _shopper_with_sensitive_item(rec: Recommender, categories: dict[Id, str]) -> tuple[Id, Id]:
    """The first shopper among whose recommendations is a sensitive item of his own."""
    for user in rec.users():
        own = {item for basket in rec.history(user) for item in basket.items}
        for item, _ in rec.recommend(user):
            if item in own and categories[item] in SENSITIVE_CATEGORIES:
                return user, item
    raise InvalidRequestError("no shopper of this shop bought a sensitive item; try another seed")


def _side_by_side(before: list[Recommendation], after: list[Recommendation], names: dict[Id, str]) -> Table:
    table = Table("before", "score", "after", "score")
    for old, new in zip(before, after, strict=True):
        style = "" if old.item in {item for item, _ in after} else "red"
        table.add_row(
            f"[{style}]{names[old.item]}[/]" if style else names[old.item],
            f"{old.score:.3f}",
            names[new.item],
            f"{new.score:.3f}",
        )
    return table
