/* SIMD comparison of keys with a limit. Few keys are below it, so rows are compared in blocks, with a bit per row. */

#ifndef UNBASKET_SIMD_THRESHOLD
#define UNBASKET_SIMD_THRESHOLD

#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BLOCK_ROWS = 8 }; /* rows of a block */

/* Return a bit for each row of a block: whether norm - 2 dot < limit. The differences do not overflow. */
static inline unsigned rows_below(int64_t limit, const int64_t *norm, const int64_t *dot)
{
    unsigned bits = 0;
#ifdef __SSE2__
    __m128i limits = _mm_set1_epi64x(limit);
    for (int i = 0; i < BLOCK_ROWS; i += 2) {
        __m128i dots = _mm_loadu_si128((const __m128i *)(dot + i));
        __m128i keys = _mm_sub_epi64(_mm_loadu_si128((const __m128i *)(norm + i)), _mm_add_epi64(dots, dots));
        bits |= (unsigned)_mm_movemask_pd(_mm_castsi128_pd(_mm_sub_epi64(keys, limits))) << i;
    }
#else
    for (int i = 0; i < BLOCK_ROWS; i++)
        bits |= (unsigned)((uint64_t)(norm[i] - 2 * dot[i] - limit) >> 63) << i;
#endif
    return bits;
}

#endif
