"""How large the experiments are: everything that decides their outcome, apart from the data and the machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The full run; `quick_settings` has the small one."""

    seed: int = 0
    quick: bool = False
    """Leave out the datasets that take long, unless they are asked for."""
    user_shares: tuple[float, ...] = (0.001, 0.01, 0.05, 0.2)
    """Table 2: of all users, how many forget a tenth of their baskets. The first is the paper's."""
    draws: int = 5
    """Table 2: how often users are drawn at random, with the seeds `seed`, `seed` + 1 and so on."""
    basket_shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    """Grouping: of all baskets, how many are forgotten."""
    stream_baskets: int = 2_000
    """Figures (a) and (b): how long a history grows, if there are so many baskets."""
    drift_baskets: int = 1_000
    """Figure (c): how many baskets are there before deletions begin."""
    latency_events: int = 2_000


def quick_settings(seed: int) -> Settings:
    """A run of under two minutes: fewer datasets, deletions and baskets."""
    return Settings(
        seed=seed,
        quick=True,
        user_shares=(0.001, 0.2),
        draws=3,
        basket_shares=(0.1, 0.5),
        stream_baskets=400,
        drift_baskets=400,
        latency_events=500,
    )
