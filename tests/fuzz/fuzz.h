/* SPDX-License-Identifier: MIT */
/* What the fuzz targets share: an input that is read byte by byte, and a check that ends the
 * process, which is how both libFuzzer and the replay notice. An input that has come to its end
 * goes on as zeros, so every input means something and so does every prefix of it. */
#ifndef HF_TESTS_FUZZ_H
#define HF_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static inline uint8_t input_byte(input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

/* Up to `wanted` bytes from the front; fewer if there are no more. */
static inline input input_take(input *in, size_t wanted)
{
    input front = {in->at, in->left < wanted ? in->left : wanted};
    if (front.left > 0)
        in->at += front.left;
    in->left -= front.left;
    return front;
}

#define REQUIRE(condition)                                                            \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

#endif
