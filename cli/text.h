/* SPDX-License-Identifier: MIT */
/* How texts and times look to people. For bytes from elsewhere see printable.h. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* How many bytes the UTF-8 character there has; 0: it is none. `code` may be NULL. */
size_t text_character(const char *bytes, size_t left, uint32_t *code);

/* How many columns of a terminal a printable text takes, and its longest beginning, in bytes, that
 * takes at most so many. */
size_t text_width(const char *text);
size_t text_cut(const char *text, size_t width);

enum { TEXT_TIME_MAX = 32 };

/* "250ms", "1.2s", "27s", "3m12s", "5h07m", "2d03h"; less than nothing is nothing. */
char *text_time(char place[TEXT_TIME_MAX], int64_t ms);

#endif
