/* SPDX-License-Identifier: MIT */
/* Host name look-up that does not block: on a thread of its own. */
#ifndef HF_NET_LOOKUP_H
#define HF_NET_LOOKUP_H

#include <netdb.h>

typedef struct hf__lookup hf__lookup;

/* Starts to look up; NULL when memory, threads or descriptors are short, or too many hang. */
hf__lookup *hf__lookup_start(const char *host, int port);
int hf__lookup_descriptor(const hf__lookup *lookup); /* readable when finished */

/* 0 and the addresses (end them with freeaddrinfo), -EAGAIN while it takes time, or -ENXIO. */
int hf__lookup_result(hf__lookup *lookup, struct addrinfo **addresses);
void hf__lookup_end(hf__lookup *lookup); /* at any time; NULL is fine */

/* Addresses written as numbers need no look-up: NULL if `host` is not one. */
struct addrinfo *hf__lookup_numeric(const char *host, int port);

#endif
