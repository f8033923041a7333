/* SPDX-License-Identifier: MIT */
/* Patterns as Redis has them: * ? [a-z] [^a-z] and \\ before a character that stands for itself. */
#ifndef HF_BASE_GLOB_H
#define HF_BASE_GLOB_H

#include <stdbool.h>
#include <stddef.h>

bool hf__glob_matches(const char *pattern, size_t pattern_length, const char *text,
                      size_t text_length);

#endif
