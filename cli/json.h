/* SPDX-License-Identifier: MIT */
/* Writes one JSON value to standard output: objects and arrays are begun and ended, commas come by
 * themselves. Texts are bytes; what is not UTF-8 becomes U+FFFD. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `key` is NULL in arrays and at the top. */
void json_begin_object(const char *key);
void json_end_object(void);
void json_begin_array(const char *key);
void json_end_array(void);
void json_text(const char *key, const char *text);
void json_bytes(const char *key, const char *bytes, size_t length);
void json_number(const char *key, int64_t number);
void json_unsigned(const char *key, uint64_t number);
void json_bool(const char *key, bool value);
void json_null(const char *key);

/* Ends the line and writes it out; false: standard output is closed or full. */
bool json_finish(void);

#endif
