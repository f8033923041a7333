/* SPDX-License-Identifier: MIT */
/* Text into fixed places: always ends with NUL, cuts what does not fit, never fails. */
#ifndef HF_BASE_TEXT_H
#define HF_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void hf__format(char *place, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void hf__vformat(char *place, size_t capacity, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* Decimal digits without locale or allocation; returns how many. `digits` has room for 20. */
size_t hf__digits(char *digits, uint64_t number);

/* Copies bytes as text that is safe to show: control characters and bytes that are not ASCII
 * become '?'. */
void hf__printable(char *place, size_t capacity, const char *bytes, size_t count);

/* What "%XX" stands for, of which so many bytes are there; -1: two digits are not. */
int hf__percent(const char *at, size_t left);

/* Parses an unsigned decimal that fills the whole text. */
bool hf__parse_decimal(const char *text, size_t length, uint64_t max, uint64_t *number);
/* Parses one that the text begins with, and returns how many digits it has; 0: none, or too large.
 */
size_t hf__parse_leading(const char *text, size_t length, uint64_t max, uint64_t *number);

#endif
