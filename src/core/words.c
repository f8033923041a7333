/* SPDX-License-Identifier: MIT */
/* Words for a script. Bytes stay where the caller has them, and the digits of numbers are kept
 * beside the words: they point at each other, so words are never copied, and live until the errand
 * is made of them. */
#include "core/words.h"

#include <assert.h>

#include "base/text.h"

void hf__words_begin(hf__words *words)
{
    words->count = 0; /* the rest is large, and nobody reads it before it is written */
}

void hf__words_put(hf__words *words, hf__slice word)
{
    assert(words->count < HF__WORDS_MAX);
    words->all[words->count++] = word;
}

void hf__words_put_number(hf__words *words, int64_t number)
{
    char *place = words->digits[words->count];
    size_t sign = number < 0;
    place[0] = '-';
    size_t length = hf__digits(place + sign, sign ? 0 - (uint64_t)number : (uint64_t)number);
    hf__words_put(words, (hf__slice){place, sign + length});
}
