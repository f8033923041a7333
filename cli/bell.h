/* SPDX-License-Identifier: MIT */
/* What a verb waits for: news from a callback, a signal, or the end of its time. */
#ifndef CLI_BELL_H
#define CLI_BELL_H

#include <stdbool.h>
#include <stdint.h>

struct bell {
    int signals;
    int news;
};

enum { BELL_NEWS = 0, BELL_TIMEOUT = -1 };

/* From now on INT, TERM, HUP and QUIT do not end the process but ring. Call it before the client is
 * opened, whose threads must not get them either. False: it has been said why. */
bool bell_open(struct bell *bell);
void bell_close(struct bell *bell);
void bell_ring(struct bell *bell); /* from any thread */

/* BELL_NEWS, BELL_TIMEOUT or the number of a signal. timeout_ms -1: no limit. */
int bell_wait(struct bell *bell, int64_t timeout_ms);

#endif
