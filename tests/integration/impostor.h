/* SPDX-License-Identifier: MIT */
/* A process between clients and a real server, which lets a conversation begin as it should and
 * then says something else: it strikes at the moment that it was told, on every connection that
 * gets there. So what is attacked is a client that has every reason to believe its server. When it
 * relents it hangs up on those it has attacked and passes everything along again.
 *
 * Start it before the test opens a client, and fill in what the attacks say before that: the
 * process has the memory of the test as it was then. It ends with process_end_all(). */
#ifndef HOLDFAST_TESTS_IMPOSTOR_H
#define HOLDFAST_TESTS_IMPOSTOR_H

#include "../lib/redis_server.h"

enum moment {
    AT_GREETING, /* instead of the first answer on a connection */
    AT_CALL,     /* instead of the answer to a script call */
    AT_MESSAGES  /* behind the confirmation of a subscription */
};

struct attack { /* in static storage */
    const char *name;
    const char *says;    /* once; NULL: nothing */
    const char *repeats; /* then, without end; NULL: nothing */
    int pace_ms;         /* between two bytes; 0: as fast as they are taken */
    bool answers_pings;  /* between two repetitions, as a server would */
};

struct impostor {
    struct process *process;
    char url[64]; /* redis://127.0.0.1:PORT */
};

struct impostor impostor_start(const struct redis_server *server);

void impostor_attack(const struct impostor *impostor, enum moment moment,
                     const struct attack *attack);
void impostor_relent(const struct impostor *impostor);

/* How many connections it has attacked so far, and how many of those live. */
long long impostor_attacked(const struct impostor *impostor);
long long impostor_victims(const struct impostor *impostor);

/* The highest growth of this process's memory since the last call of the first. */
void memory_watch_begin(void);
int64_t memory_growth_kib(void);

#endif
