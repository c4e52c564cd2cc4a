"""From a user's baskets to his vector (paper, sections 2.2 and 4): pure, no I/O, no ids.

history   the baskets of each user, in order, and the changes an event can make to them
marks     saved states of the fold, so that a change late in a long history replays little
space     the work space of a fold
fold      the one update rule: from baskets to weights, from a mark or from the start
shares    what each basket contributes to a weight, for explanations
"""
