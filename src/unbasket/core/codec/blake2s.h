/* BLAKE2s (RFC 7693) as hashlib computes it, for hashes of 32 bytes with a personalization. A call of hashlib takes three
   times as long for one pair, and six times as long as the eight pairs at once that a tree of users needs. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wmaybe-uninitialized" /* GCC does not see that loops over lanes set all of them */

#define BLAKE2S_SIZE 32
#define BLAKE2S_BLOCK 64
#define LANES 8

typedef uint32_t Lanes __attribute__((vector_size(4 * LANES)));

static const uint32_t BLAKE2S_IV[8] = {
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
};

static const uint8_t BLAKE2S_SIGMA[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

#define ROTATED(x, n) ((x) >> (n) | (x) << (32 - (n)))
#define MIX(a, b, c, d, x, y) \
    a += b + (x), d = ROTATED(d ^ a, 16), c += d, b = ROTATED(b ^ c, 12); \
    a += b + (y), d = ROTATED(d ^ a, 8), c += d, b = ROTATED(b ^ c, 7)

/* The compression function of section 3.2, for one message or for eight side by side: `Word` is a word or its lanes. */
#define COMPRESS(name, Word) \
    static inline __attribute__((always_inline)) void name(Word state[8], const Word m[16], uint32_t count, uint32_t final) \
    { \
        Word v[16]; \
        for (int i = 0; i < 8; i++) { \
            v[i] = state[i]; \
            v[i + 8] = (Word){0} + BLAKE2S_IV[i]; \
        } \
        v[12] ^= count; \
        v[14] ^= final; \
        for (int i = 0; i < 10; i++) { \
            const uint8_t *s = BLAKE2S_SIGMA[i]; \
            MIX(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]); \
            MIX(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]); \
            MIX(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]); \
            MIX(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]); \
            MIX(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]); \
            MIX(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]); \
            MIX(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]); \
            MIX(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]); \
        } \
        for (int i = 0; i < 8; i++) \
            state[i] ^= v[i] ^ v[i + 8]; \
    }

COMPRESS(blake2s_compress, uint32_t)
COMPRESS(blake2s_compress_lanes, Lanes)

static uint32_t blake2s_word(const uint8_t *bytes)
{
    return (uint32_t) bytes[0] | (uint32_t) bytes[1] << 8 | (uint32_t) bytes[2] << 16 | (uint32_t) bytes[3] << 24;
}

static void blake2s_store(uint8_t *bytes, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t) (word >> 8 * i);
}

/* The state before the first block: the IV and the parameter block of section 2.5, with a person of 8 bytes. */
static void blake2s_start(uint32_t state[8], const char *person, uint32_t size, uint32_t key_size)
{
    memcpy(state, BLAKE2S_IV, sizeof(BLAKE2S_IV));
    state[0] ^= 0x01010000 ^ key_size << 8 ^ size;
    state[6] ^= blake2s_word((const uint8_t *) person);
    state[7] ^= blake2s_word((const uint8_t *) person + 4);
}

/* Hash the rest of a message; `done` bytes, a multiple of a block, are in the state already. */
static void blake2s_finish(uint32_t state[8], const uint8_t *data, size_t length, uint32_t done)
{
    uint8_t block[BLAKE2S_BLOCK];
    uint32_t words[16];
    do {
        size_t taken = length < BLAKE2S_BLOCK ? length : BLAKE2S_BLOCK;
        memset(block, 0, sizeof(block));
        if (taken)
            memcpy(block, data, taken);
        for (int i = 0; i < 16; i++)
            words[i] = blake2s_word(block + 4 * i);
        data += taken, length -= taken, done += (uint32_t) taken;
        blake2s_compress(state, words, done, length ? 0 : ~(uint32_t) 0);
    } while (length);
}

/* Compute hashlib.blake2s(data, person=person). */
static void blake2s_of(uint8_t *hash, const uint8_t *data, size_t length, const char *person)
{
    uint32_t state[8];
    blake2s_start(state, person, BLAKE2S_SIZE, 0);
    blake2s_finish(state, data, length, 0);
    for (int i = 0; i < 8; i++)
        blake2s_store(hash + 4 * i, state[i]);
}

/* Compute hashlib.blake2s(left + right, person=person) of two hashes. */
static void blake2s_pair(uint8_t *hash, const uint8_t *left, const uint8_t *right, const char *person)
{
    uint8_t both[BLAKE2S_BLOCK];
    memcpy(both, left, BLAKE2S_SIZE);
    memcpy(both + BLAKE2S_SIZE, right, BLAKE2S_SIZE);
    blake2s_of(hash, both, BLAKE2S_BLOCK, person);
}

/* With AVX2, lanes take half the time; the processor is looked at when the module is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define WITH_AVX2 __attribute__((target_clones("avx2", "default")))
#else
#define WITH_AVX2
#endif

/* Climb from leaves of a tree with empty siblings: hash lane i with zeros for each depth from `from` - 1 down to upto[i].
   A set bit of the place, the first bit at depth 0 of `from`, says that the hash is the right one of the pair. */
WITH_AVX2 static void blake2s_climb(uint8_t (*hashes)[BLAKE2S_SIZE], const uint64_t *places, const uint8_t *upto, int from,
                          const char *person)
{
    Lanes state[8], words[16], hash[8];
    uint32_t start[8];
    int lowest = from;
    blake2s_start(start, person, BLAKE2S_SIZE, 0);
    for (int lane = 0; lane < LANES; lane++) {
        lowest = upto[lane] < lowest ? upto[lane] : lowest;
        for (int i = 0; i < 8; i++)
            hash[i][lane] = blake2s_word(hashes[lane] + 4 * i);
    }
    for (int depth = from - 1; depth >= lowest; depth--) {
        Lanes is_right, climbs;
        for (int lane = 0; lane < LANES; lane++) {
            is_right[lane] = 0 - (uint32_t) (places[lane] >> (from - 1 - depth) & 1);
            climbs[lane] = 0 - (uint32_t) (depth >= upto[lane]);
        }
        for (int i = 0; i < 8; i++) {
            words[i] = hash[i] & ~is_right;
            words[i + 8] = hash[i] & is_right;
            state[i] = (Lanes){0} + start[i];
        }
        blake2s_compress_lanes(state, words, BLAKE2S_BLOCK, ~(uint32_t) 0);
        for (int i = 0; i < 8; i++)
            hash[i] = (state[i] & climbs) | (hash[i] & ~climbs);
    }
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < 8; i++)
            blake2s_store(hashes[lane] + 4 * i, hash[i][lane]);
}

#define SEAL_SIZE 8

/* The state of hashlib.blake2s(key=key, digest_size=8, person=person) after the block with the key of 32 bytes. */
static void blake2s_start_seal(uint32_t state[8], const uint8_t *key, const char *person)
{
    uint32_t words[16] = {0};
    blake2s_start(state, person, SEAL_SIZE, BLAKE2S_SIZE);
    for (int i = 0; i < 8; i++)
        words[i] = blake2s_word(key + 4 * i);
    blake2s_compress(state, words, BLAKE2S_BLOCK, 0);
}

/* Compute the seal of a row from that state: the hash of its number, in eight bytes, and its payload. */
static void blake2s_seal(uint8_t *seal, const uint32_t start[8], uint64_t row, const uint8_t *payload, size_t length)
{
    uint8_t block[BLAKE2S_BLOCK];
    uint32_t state[8], words[16];
    size_t first = length < BLAKE2S_BLOCK - 8 ? length : BLAKE2S_BLOCK - 8;
    memcpy(state, start, sizeof(state));
    for (int i = 0; i < 8; i++)
        block[i] = (uint8_t) (row >> 8 * (7 - i));
    memcpy(block + 8, payload, first);
    if (length == first) {
        blake2s_finish(state, block, 8 + first, BLAKE2S_BLOCK);
    } else {
        for (int i = 0; i < 16; i++)
            words[i] = blake2s_word(block + 4 * i);
        blake2s_compress(state, words, 2 * BLAKE2S_BLOCK, 0);
        blake2s_finish(state, payload + first, length - first, 2 * BLAKE2S_BLOCK);
    }
    for (int i = 0; i < 2; i++)
        blake2s_store(seal + 4 * i, state[i]);
}
