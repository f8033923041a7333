/* SPDX-License-Identifier: MIT */
/* The arguments of a script, as they are gathered for an errand. Pure. */
#ifndef HF_CORE_WORDS_H
#define HF_CORE_WORDS_H

#include <holdfast_store.h>

#include "resp/encode.h"

enum {
    HF__WORDS_MAX = 3 + 3 * HF_WRITES_MAX, /* of the longest: a guarded write */
    HF__WORD_DIGITS = 1 + 20               /* a sign, and what hf__digits() takes */
};

typedef struct hf__words {
    size_t count;
    hf__slice all[HF__WORDS_MAX];
    char digits[HF__WORDS_MAX][HF__WORD_DIGITS];
} hf__words;

void hf__words_begin(hf__words *words);
void hf__words_put(hf__words *words, hf__slice word); /* its bytes must outlive the words */
void hf__words_put_number(hf__words *words, int64_t number);

#endif
