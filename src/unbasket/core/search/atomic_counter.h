/* Turns that several threads take: each number is given out once. */

#ifndef UNBASKET_TURNS
#define UNBASKET_TURNS

#ifdef _MSC_VER
#include <intrin.h>
static inline long take_turn(volatile long *next) { return _InterlockedExchangeAdd(next, 1); }
#else
static inline long take_turn(volatile long *next) { return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED); }
#endif

#endif
