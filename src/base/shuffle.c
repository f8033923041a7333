/* SPDX-License-Identifier: MIT */
/* Numbers that look like any others, and can be told back by those who have the key. A Feistel
 * network does that with whatever round function: each round changes one part of the number by
 * something that is made of the other part, which stays, so that it can be made again and taken
 * off. The parts have 31 and 32 bits, and take turns.
 *
 * The round function is SipHash, short, with a key for each round that is made of the whole key by
 * the same function at length. That is a lot of mixing for numbers that nobody defends to the last;
 * but whoever sees many of them, next to each other, must not see that they are.
 *
 * Zero is no id. The number that would become zero becomes what zero would become, which is nobody
 * else's, and not zero again. */
#include "base/shuffle.h"

enum { LEFT_BITS = 31, RIGHT_BITS = 32, SHORT = 1, LONG = 4 };

static const uint64_t left_mask = (UINT64_C(1) << LEFT_BITS) - 1;
static const uint64_t right_mask = (UINT64_C(1) << RIGHT_BITS) - 1;

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline uint64_t turn(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void stir(sip *s, int times)
{
    for (int i = 0; i < times; i++) {
        s->a += s->b;
        s->c += s->d;
        s->b = turn(s->b, 13) ^ s->a;
        s->d = turn(s->d, 16) ^ s->c;
        s->a = turn(s->a, 32);
        s->c += s->b;
        s->a += s->d;
        s->b = turn(s->b, 17) ^ s->c;
        s->d = turn(s->d, 21) ^ s->a;
        s->c = turn(s->c, 32);
    }
}

static inline sip begin(uint64_t first, uint64_t second)
{
    return (sip){first ^ UINT64_C(0x736f6d6570736575), second ^ UINT64_C(0x646f72616e646f6d),
                 first ^ UINT64_C(0x6c7967656e657261), second ^ UINT64_C(0x7465646279746573)};
}

static inline void take_in(sip *s, uint64_t word, int times)
{
    s->d ^= word;
    stir(s, times);
    s->a ^= word;
}

static inline uint64_t finish(sip *s, int times)
{
    s->c ^= 0xff;
    stir(s, times);
    return s->a ^ s->b ^ s->c ^ s->d;
}

/* ---- Keys ---- */

static uint64_t word_at(const unsigned char *bytes, size_t length, size_t at)
{
    uint64_t word = 0;
    for (size_t i = 0; i < sizeof(word) && at + i < length; i++)
        word |= (uint64_t)bytes[at + i] << 8 * i;
    return word;
}

/* The number in front makes them differ, the length behind tells keys from others with zeros. */
static uint64_t derive(const void *key, size_t length, uint64_t number)
{
    sip s = begin(number, ~number);
    for (size_t at = 0; at < length; at += sizeof(uint64_t))
        take_in(&s, word_at(key, length, at), LONG);
    take_in(&s, length, LONG);
    return finish(&s, 2 * LONG);
}

void hf__shuffle_init(hf__shuffle *shuffle, const void *key, size_t length)
{
    for (uint64_t i = 0; i < HF__SHUFFLE_ROUNDS; i++) {
        shuffle->keys[i][0] = derive(key, length, 2 * i);
        shuffle->keys[i][1] = derive(key, length, 2 * i + 1);
    }
}

/* ---- Numbers ---- */

static inline uint64_t mix(const hf__shuffle *shuffle, int round, uint64_t part)
{
    sip s = begin(shuffle->keys[round][0], shuffle->keys[round][1]);
    take_in(&s, part, SHORT);
    return finish(&s, 3 * SHORT);
}

/* Even rounds change the left part, odd ones the right. */
static inline void change(const hf__shuffle *shuffle, int round, uint64_t *left, uint64_t *right)
{
    if (round % 2 == 0)
        *left ^= mix(shuffle, round, *right) & left_mask;
    else
        *right ^= mix(shuffle, round, *left) & right_mask;
}

static int64_t there(const hf__shuffle *shuffle, int64_t number)
{
    uint64_t left = (uint64_t)number >> RIGHT_BITS, right = (uint64_t)number & right_mask;
    for (int round = 0; round < HF__SHUFFLE_ROUNDS; round++)
        change(shuffle, round, &left, &right);
    return (int64_t)(left << RIGHT_BITS | right);
}

static int64_t back(const hf__shuffle *shuffle, int64_t number)
{
    uint64_t left = (uint64_t)number >> RIGHT_BITS, right = (uint64_t)number & right_mask;
    for (int round = HF__SHUFFLE_ROUNDS - 1; round >= 0; round--)
        change(shuffle, round, &left, &right);
    return (int64_t)(left << RIGHT_BITS | right);
}

int64_t hf__shuffle_do(const hf__shuffle *shuffle, int64_t number)
{
    int64_t result = there(shuffle, number);
    return result != 0 ? result : there(shuffle, 0);
}

int64_t hf__shuffle_undo(const hf__shuffle *shuffle, int64_t number)
{
    int64_t result = back(shuffle, number);
    return result != 0 ? result : back(shuffle, 0);
}
