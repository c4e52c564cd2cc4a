"""All users' vectors as a live, exact index, and the questions asked of it.

index    vectors in fixed point, the users of each item, users in order of magnitude; changed in place by every event
search   the nearest users, the mean of their vectors, the best items
"""
