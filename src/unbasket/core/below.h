/* Which of the next few keys are below a limit. */

#ifndef UNBASKET_BELOW
#define UNBASKET_BELOW

#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* As bits, for eight rows: whether norm - 2 dot < limit. Differences of such numbers do not overflow. */
static inline unsigned eight_below(int64_t limit, const int64_t *norm, const int64_t *dot)
{
    unsigned bits = 0;
#ifdef __SSE2__
    __m128i limits = _mm_set1_epi64x(limit);
    for (int i = 0; i < 8; i += 2) {
        __m128i dots = _mm_loadu_si128((const __m128i *)(dot + i));
        __m128i keys = _mm_sub_epi64(_mm_loadu_si128((const __m128i *)(norm + i)), _mm_add_epi64(dots, dots));
        bits |= (unsigned)_mm_movemask_pd(_mm_castsi128_pd(_mm_sub_epi64(keys, limits))) << i;
    }
#else
    for (int i = 0; i < 8; i++)
        bits |= (unsigned)((uint64_t)(norm[i] - 2 * dot[i] - limit) >> 63) << i;
#endif
    return bits;
}

#endif
