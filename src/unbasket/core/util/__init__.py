"""Containers without a model: the top n, a sharded dict, fast paths for lists of ids."""

from unbasket.core.util import id_fast, sharded_dict

are_of_type = id_fast.are_of_type
are_plain = id_fast.are_plain
have_types = id_fast.have_types
named = id_fast.named
ShardedDict = sharded_dict.ShardedDict
