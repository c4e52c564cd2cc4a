"""One user at a time: histories, events on them, the fold into a vector, and its checkpoints."""

from unbasket.core.model import checkpoints, events, fold, history, learned, row_ids

UNTIMED = history.UNTIMED
Histories = history.Histories
ONE = fold.ONE
FACTOR_ONE = fold.FACTOR_ONE
FoldWorkspace = fold.FoldWorkspace
Rule = fold.Rule
Vector = fold.Vector
Share = learned.Share
LearnedSums = learned.LearnedSums
alpha_from = learned.alpha_from
factors_from = learned.factors_from
CHECKPOINT_EVERY = checkpoints.CHECKPOINT_EVERY
Checkpoints = checkpoints.Checkpoints
worth_keeping = checkpoints.worth_keeping
TIED = events.TIED
Baskets = events.Baskets
EventApplier = events.EventApplier
RowIds = row_ids.RowIds
