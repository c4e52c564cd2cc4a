/* BLAKE2b (RFC 7693) of whole messages: 32-byte hash, personalization, no key. */

#ifndef UNBASKET_BLAKE2B
#define UNBASKET_BLAKE2B

#include <stdint.h>
#include <string.h>

static const uint64_t blake2b_start[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t blake2b_order[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
};

static inline uint64_t blake2b_rotated(uint64_t word, int by)
{
    return word >> by | word << (64 - by);
}

static inline uint64_t blake2b_word(const uint8_t *at)
{
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--)
        word = word << 8 | at[i];
    return word;
}

static inline void blake2b_mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y)
{
    v[a] += v[b] + x;
    v[d] = blake2b_rotated(v[d] ^ v[a], 32);
    v[c] += v[d];
    v[b] = blake2b_rotated(v[b] ^ v[c], 24);
    v[a] += v[b] + y;
    v[d] = blake2b_rotated(v[d] ^ v[a], 16);
    v[c] += v[d];
    v[b] = blake2b_rotated(v[b] ^ v[c], 63);
}

/* Compress one block into the state; `count` is the number of message bytes up to its end. */
static inline void blake2b_compress(uint64_t *state, const uint8_t *block, uint64_t count, int is_last)
{
    uint64_t v[16], m[16];
    for (int i = 0; i < 16; i++)
        m[i] = blake2b_word(block + 8 * i);
    memcpy(v, state, 64);
    memcpy(v + 8, blake2b_start, 64);
    v[12] ^= count;
    if (is_last)
        v[14] = ~v[14];
    for (int round = 0; round < 12; round++) {
        const uint8_t *s = blake2b_order[round];
        blake2b_mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
        blake2b_mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
        blake2b_mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
        blake2b_mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
        blake2b_mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
        blake2b_mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
        blake2b_mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
        blake2b_mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
    }
    for (int i = 0; i < 8; i++)
        state[i] ^= v[i] ^ v[i + 8];
}

/* Hash a message; `person` has 16 bytes. */
static inline void blake2b(const uint8_t *message, size_t bytes, const uint8_t *person, uint8_t *hash)
{
    uint64_t state[8];
    uint8_t last[128] = {0};
    size_t done = 0;
    memcpy(state, blake2b_start, 64);
    state[0] ^= 0x01010000 ^ 32; /* parameter block: 32 bytes, no key, no tree */
    state[6] ^= blake2b_word(person);
    state[7] ^= blake2b_word(person + 8);
    for (; bytes - done > 128; done += 128)
        blake2b_compress(state, message + done, done + 128, 0);
    memcpy(last, message + done, bytes - done);
    blake2b_compress(state, last, bytes, 1);
    for (int i = 0; i < 32; i++)
        hash[i] = (uint8_t)(state[i / 8] >> 8 * (i % 8));
    memset(last, 0, sizeof(last));
}

#endif
