/* SPDX-License-Identifier: MIT */
/* Somebody who looks at a key with megabytes in it, which another program has put there, over the
 * connections of a client that has locks to renew. For both worlds. */
#ifndef HF_SIM_PROBER_H
#define HF_SIM_PROBER_H

#include "core/core.h"
#include "server.h"

#define PROBED_KEY "large"

typedef struct sim_prober {
    bool busy;
    hf__call call;
    hf__answer answer;
    hf_inspection seen;
} sim_prober;

void prober_put(sim_server *server);    /* the key */
void prober_remove(sim_server *server); /* so that nothing is left */
bool prober_begin(sim_prober *prober);  /* then its call is to be started; false: not now */
/* The call is done. NULL: as it should be; else what is wrong. */
const char *prober_done(sim_prober *prober);
void prober_free(sim_prober *prober);

#endif
