"""Types of everything that callers pass in, validated once, and of everything that comes back.

ids              what an id is, the order of ids, and the internal codes
id_text          ids as text
events           a basket to learn, something to forget
validation       the arguments of queries
basket_columns   many baskets as arrays
history_table    histories as an Arrow table
frames           data frames to baskets, recommendations to data frames
decoding         JSON and TOML from outside
times            units of time, and dates
privacy          the privacy threshold
results          the engine's answers, callbacks of progress, and products
"""
