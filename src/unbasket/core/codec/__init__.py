"""Baskets as bytes and from columns: rows of a store, hashes and the tree of users, purchases grouped into baskets."""

from unbasket.core.codec import group_baskets, row_reader, row_writer, user_hash, user_tree

RowReader = row_reader.RowReader
gathered = row_reader.gathered
sorted_by_user = row_reader.sorted_by_user
BasketRowWriter = row_writer.BasketRowWriter
ColumnRowWriter = row_writer.ColumnRowWriter
HistoryRowWriter = row_writer.HistoryRowWriter
UserHasher = user_hash.UserHasher
UserTree = user_tree.UserTree
arrange = group_baskets.arrange
encode = group_baskets.encode
rows_by_user = group_baskets.rows_by_user
tick = group_baskets.tick
