"""Containers and locks without a model: the top n, a sharded dict, fast paths for lists of ids, group commit, tasks."""

from unbasket.core.util import group_commit, id_fast, locks, sharded_dict, task

are_of_type = id_fast.are_of_type
are_plain = id_fast.are_plain
coded_learns = id_fast.coded_learns
distinct = id_fast.distinct
have_types = id_fast.have_types
named = id_fast.named
plain_learn = id_fast.plain_learn
ShardedDict = sharded_dict.ShardedDict
GroupCommit = group_commit.GroupCommit
ReadWriteLock = locks.ReadWriteLock
RecoveringLock = locks.RecoveringLock
TryLock = locks.TryLock
Task = task.Task
