/* SPDX-License-Identifier: MIT */
/* What calls have in common that are one query or a few: whether the client may be asked at all,
 * and asking it. A query is always taken: the core frees it once it was started, and we do if it
 * was not. */
#include "api/client.h"
#include "core/fail.h"

hf_status hf__client_ready(const hf_client *client, hf_error *error)
{
    if (client == NULL)
        return hf__fail(error, HF_EINVAL, "client is NULL");
    return hf__client_check(client, error);
}

static hf_status run(hf_client *client, hf__call *call, hf_error *error)
{
    if (call->query == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    hf_status status = hf__driver_call(client->driver, call);
    if (!call->taken)
        hf__query_drop(call->query); /* never started */
    return hf__call_outcome(error, status, call);
}

hf_status hf__client_run(hf_client *client, hf__query *query, hf__answer *answer, hf_error *error)
{
    hf__call call = {.kind = HF__CALL_QUERY, .query = query, .answer = answer};
    return run(client, &call, error);
}

hf_status hf__client_run_until(hf_client *client, hf__query *query, hf__answer *answer,
                               hf__instant ends, hf_error *error)
{
    hf__call call = {.kind = HF__CALL_QUERY, .query = query, .answer = answer, .ends = ends};
    return run(client, &call, error);
}

hf_status hf__client_run_for(hf_client *client, hf_hold *hold, hf__query *query, hf__answer *answer,
                             hf_error *error)
{
    hf__call call = {.kind = HF__CALL_QUERY, .hold = hold, .query = query, .answer = answer};
    return run(client, &call, error);
}
