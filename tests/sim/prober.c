/* SPDX-License-Identifier: MIT */
/* See prober.h. */
#include "prober.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 1100 * 1000 }; /* more than a reply may have */

void prober_put(sim_server *server)
{
    char *value = malloc(BYTES + 1);
    if (value == NULL)
        abort();
    memset(value, 'v', BYTES);
    value[BYTES] = '\0';
    sim_server_run(server, 3, (const char *const[]){"SET", PROBED_KEY, value});
    free(value);
}

void prober_remove(sim_server *server)
{
    sim_server_run(server, 2, (const char *const[]){"DEL", PROBED_KEY});
}

bool prober_begin(sim_prober *p)
{
    hf__slice none = {NULL, 0};
    if (p->busy)
        return false;
    hf__query *query = hf__query_new(HF__QUERY_INSPECT, none, hf__slice_text(PROBED_KEY), none, 0);
    if (query == NULL)
        return false;
    hf__buffer_clear(&p->answer.value);
    p->answer.inspection = &p->seen;
    p->call = (hf__call){.kind = HF__CALL_QUERY, .query = query, .answer = &p->answer};
    p->busy = true;
    return true;
}

const char *prober_done(sim_prober *p)
{
    hf_status status = p->call.error.status;
    p->busy = false;
    if (status == HF_EINTERNAL || status == HF_EINVAL || status == HF_EDENIED ||
        status == HF_ESERVER)
        return p->call.error.text;
    return NULL;
}

void prober_free(sim_prober *p)
{
    hf__buffer_free(&p->answer.value);
    hf__buffer_free(&p->answer.keys);
    p->busy = false;
}
