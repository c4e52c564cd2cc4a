"""One user at a time: histories, the fold into a vector, checkpoints of the fold."""
