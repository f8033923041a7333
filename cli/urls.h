/* SPDX-License-Identifier: MIT */
/* Server URLs as they were given: which of them say what, and each server of them by itself.
 * Whether they are good is for the library to say. */
#ifndef CLI_URLS_H
#define CLI_URLS_H

#include "options.h"

bool urls_have_password(const struct option_list *texts); /* any of them has */
bool urls_lack_password(const struct option_list *texts); /* any of them has a user only */
bool urls_are_protected(const char *text);                /* any of them is, by TLS */

/* Without user and password, with a blank between any two. What does not fit is not shown. */
void urls_hide(const char *text, char *place, size_t capacity);

/* All texts as one, with blanks between them. Freed by the caller; NULL: out of memory. */
char *urls_join(const struct option_list *texts);

size_t urls_count(const struct option_list *texts); /* of servers */

/* The URL of the one server with that index, counted through all texts. Freed by the caller; NULL:
 * there are not so many, or out of memory. */
char *urls_server(const struct option_list *texts, size_t index);

#endif
