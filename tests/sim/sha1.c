/* SPDX-License-Identifier: MIT */
/* SHA-1 as in RFC 3174, for names of scripts only. It is broken as a proof of origin, which nobody
 * asks of it here. The whole text is in memory, so there is no state between pieces: whole blocks
 * are read where they are, and the last one or two are put together with their padding.
 */
#include "sha1.h"

#include <string.h>

static uint32_t turn(uint32_t word, int bits)
{
    return (word << bits) | (word >> (32 - bits));
}

static void schedule(uint32_t words[80], const unsigned char *block)
{
    for (size_t i = 0; i < 16; i++, block += 4)
        words[i] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 |
                   (uint32_t)block[3];
    for (size_t i = 16; i < 80; i++)
        words[i] = turn(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
}

static uint32_t mix(size_t round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20)
        return ((b & c) | (~b & d)) + 0x5a827999u;
    if (round < 40)
        return (b ^ c ^ d) + 0x6ed9eba1u;
    if (round < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcu;
    return (b ^ c ^ d) + 0xca62c1d6u;
}

static void take_block(uint32_t state[5], const unsigned char *block)
{
    uint32_t words[80];
    uint32_t s[5];
    schedule(words, block);
    memcpy(s, state, sizeof(s));
    for (size_t i = 0; i < 80; i++) {
        uint32_t next = turn(s[0], 5) + mix(i, s[1], s[2], s[3]) + s[4] + words[i];
        s[4] = s[3];
        s[3] = s[2];
        s[2] = turn(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (size_t i = 0; i < 5; i++)
        state[i] += s[i];
}

static void take_rest(uint32_t state[5], const unsigned char *rest, size_t count, uint64_t bits)
{
    unsigned char tail[128] = {0};
    if (count > 0)
        memcpy(tail, rest, count);
    tail[count] = 0x80;
    size_t size = count < 56 ? 64 : 128;
    for (size_t i = 0; i < 8; i++)
        tail[size - 1 - i] = (unsigned char)(bits >> (8 * i));
    take_block(state, tail);
    if (size == 128)
        take_block(state, tail + 64);
}

void sim_sha1_hex(hf__slice text, char hex[41])
{
    uint32_t state[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    const unsigned char *at = (const unsigned char *)text.bytes;
    size_t left = text.length;
    for (; left >= 64; left -= 64, at += 64)
        take_block(state, at);
    take_rest(state, at, left, (uint64_t)text.length * 8);
    for (size_t i = 0; i < 40; i++)
        hex[i] = "0123456789abcdef"[(state[i / 8] >> (28 - 4 * (i % 8))) & 15];
    hex[40] = '\0';
}
