/* CRC-32 as zlib computes it, eight bytes at a time. Unlike zlib.crc32, it needs neither the GIL nor a bytes object for
   each payload. */

#include <stddef.h>
#include <stdint.h>

static uint32_t CRC32_TABLE[8][256];

/* Fill the tables when the module is loaded. */
__attribute__((constructor)) static void crc32_prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0xEDB88320u : 0);
        CRC32_TABLE[0][i] = value;
    }
    for (int i = 0; i < 256; i++)
        for (int j = 1; j < 8; j++)
            CRC32_TABLE[j][i] = CRC32_TABLE[j - 1][i] >> 8 ^ CRC32_TABLE[0][CRC32_TABLE[j - 1][i] & 0xFF];
}

static uint32_t crc32_word(const uint8_t *data)
{
    return (uint32_t) data[0] | (uint32_t) data[1] << 8 | (uint32_t) data[2] << 16 | (uint32_t) data[3] << 24;
}

/* Return zlib.crc32(data, start). */
static uint32_t crc32_of(const uint8_t *data, size_t length, uint32_t start)
{
    uint32_t crc = ~start;
    for (; length >= 8; length -= 8, data += 8) {
        uint32_t low = crc ^ crc32_word(data), high = crc32_word(data + 4);
        crc = CRC32_TABLE[7][low & 0xFF] ^ CRC32_TABLE[6][low >> 8 & 0xFF] ^ CRC32_TABLE[5][low >> 16 & 0xFF]
            ^ CRC32_TABLE[4][low >> 24] ^ CRC32_TABLE[3][high & 0xFF] ^ CRC32_TABLE[2][high >> 8 & 0xFF]
            ^ CRC32_TABLE[1][high >> 16 & 0xFF] ^ CRC32_TABLE[0][high >> 24];
    }
    for (; length > 0; length--, data++)
        crc = crc >> 8 ^ CRC32_TABLE[0][(crc ^ *data) & 0xFF];
    return ~crc;
}
