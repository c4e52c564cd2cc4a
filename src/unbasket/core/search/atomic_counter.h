/* An atomic counter that hands out work: each thread takes the next number, each number is taken once. */

#ifndef UNBASKET_ATOMIC_COUNTER
#define UNBASKET_ATOMIC_COUNTER

static inline long fetch_increment(volatile long *next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }

#endif
