"""One user at a time: histories, events on them, the fold into a vector, and its checkpoints."""
