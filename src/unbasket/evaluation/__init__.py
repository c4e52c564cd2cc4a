"""Evaluation: the quality of recommendations, with confidence intervals, compared with baselines.

    history, future -> protocol -> split -> ranker -> rankings -> scores -> intervals, comparisons
                       (query users)       (a model)             (per user)

A ranker is any model: it gets the history and a split, and returns one ranked list per query user. It never sees the
future. `api` has `unbasket.evaluate` and `unbasket.tune`. `docs/evaluation.md` has the formulas and says why published
figures differ.
"""

from unbasket.evaluation._item_sets import ItemSets
from unbasket.evaluation.baselines import BASELINES, Ranker, g_topfreq, gp_topfreq, p_topfreq
from unbasket.evaluation.metrics import Hits, find_hits, hit_rate, ndcg, precision, recall, score_users
from unbasket.evaluation.protocols import (
    PROTOCOLS,
    EvaluationProtocol,
    Holdout,
    HuUsers,
    Split,
    all_users_split,
    first_of_twins,
    hide_last_basket,
    hu_split,
    hu_users,
    hu_validation_split,
    paper_split,
)
from unbasket.evaluation.statistics import Comparison, MeanInterval, bootstrap_mean, bootstrap_means, compare_paired

__all__ = [
    "BASELINES",
    "PROTOCOLS",
    "Comparison",
    "EvaluationProtocol",
    "Hits",
    "Holdout",
    "HuUsers",
    "ItemSets",
    "MeanInterval",
    "Ranker",
    "Split",
    "all_users_split",
    "bootstrap_mean",
    "bootstrap_means",
    "compare_paired",
    "find_hits",
    "first_of_twins",
    "g_topfreq",
    "gp_topfreq",
    "hide_last_basket",
    "hit_rate",
    "hu_split",
    "hu_users",
    "hu_validation_split",
    "ndcg",
    "p_topfreq",
    "paper_split",
    "precision",
    "recall",
    "score_users",
]
