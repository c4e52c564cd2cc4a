/* Turns that several threads take: each number is given out once. */

#ifndef UNBASKET_TURNS
#define UNBASKET_TURNS

static inline long fetch_increment(volatile long *next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }

#endif
