/* SPDX-License-Identifier: MIT */
/* Bytes from elsewhere, for people's terminals. */
#ifndef CLI_PRINTABLE_H
#define CLI_PRINTABLE_H

#include <stddef.h>

/* The bytes as they are if they are printable UTF-8, otherwise with \xNN for those that are not.
 * Cut if there is no room. Returns `place`. */
const char *printable(const char *bytes, size_t length, char *place, size_t capacity);

#endif
