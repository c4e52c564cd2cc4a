"""Evaluation: the quality of recommendations, with confidence intervals, compared with baselines.

    history, future -> protocol -> split -> ranker -> rankings -> scores -> intervals, comparisons
                       (query users)       (a model)             (per user)

A ranker is any model: it gets the history and a split, and returns one ranked list per query user. It never sees the
future. `api` has `unbasket.evaluate` and `unbasket.tune`. `docs/evaluation.md` has the formulas and says why published
figures differ.
"""

from unbasket.evaluation._item_sets import ItemSets
from unbasket.evaluation.baselines import BASELINES, Ranker, g_topfreq, gp_topfreq, p_topfreq
from unbasket.evaluation.field_baselines import FIELD_BASELINES, TrexRepetition, UpCf
from unbasket.evaluation.forgetting import Forgetting, benchmark_forgetting, categories_like
from unbasket.evaluation.keysets import KEYSET_PROTOCOLS, Keyset, named_protocols, read_keyset
from unbasket.evaluation.metrics import (
    Hits,
    Lists,
    diversity,
    find_hits,
    hit_rate,
    ndcg,
    novelty,
    precision,
    recall,
    repetition_ratio,
    score_users,
)
from unbasket.evaluation.models import Model, SteppedRanker, ranker_of
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
    "FIELD_BASELINES",
    "KEYSET_PROTOCOLS",
    "PROTOCOLS",
    "Comparison",
    "EvaluationProtocol",
    "Forgetting",
    "Hits",
    "Holdout",
    "HuUsers",
    "ItemSets",
    "Keyset",
    "Lists",
    "MeanInterval",
    "Model",
    "Ranker",
    "Split",
    "SteppedRanker",
    "TrexRepetition",
    "UpCf",
    "all_users_split",
    "benchmark_forgetting",
    "bootstrap_mean",
    "bootstrap_means",
    "categories_like",
    "compare_paired",
    "diversity",
    "find_hits",
    "first_of_twins",
    "g_topfreq",
    "gp_topfreq",
    "hide_last_basket",
    "hit_rate",
    "hu_split",
    "hu_users",
    "hu_validation_split",
    "named_protocols",
    "ndcg",
    "novelty",
    "p_topfreq",
    "paper_split",
    "precision",
    "ranker_of",
    "read_keyset",
    "recall",
    "repetition_ratio",
    "score_users",
]
