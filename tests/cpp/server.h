/* SPDX-License-Identifier: MIT */
/* A redis-server for programs in C++, to whom ../lib/redis_server.h cannot speak: its neighbours
 * use C11's atomics. One server, for the program's main thread; whatever fails ends the program. */
#ifndef HOLDFAST_TESTS_CPP_SERVER_H
#define HOLDFAST_TESTS_CPP_SERVER_H

#ifdef __cplusplus
extern "C" {
#endif

const char *server_start(void);              /* returns its URL */
const char *server_ask(const char *command); /* the answer as text, valid until the next call */
void server_freeze(void);
void server_thaw(void);
void server_end(void);

#ifdef __cplusplus
}
#endif

#endif
