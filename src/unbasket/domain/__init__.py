"""What comes in and goes out: everything that a caller hands over, checked once, and everything that comes back.

ids          what is an id, their order, and the codes that stand for them inside
spelling     ids where everything is text
events       a basket to learn, something to forget
checks       the arguments of questions
orders       many baskets at once, as arrays
frames       data frames to orders, recommendations to data frames
decoding     JSON and TOML from outside

results      what an engine answers
notebook     what a notebook shows of it
"""
