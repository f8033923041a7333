/* SPDX-License-Identifier: MIT */
/* What calls have in common that are one query or a few: whether the client may be asked at all,
 * and asking it. A query is always taken: the core frees it once it was started, and we do if it
 * was not.
 *
 * A call that must not count twice has a word of its own, by which the server knows a copy of it.
 */
#include <inttypes.h>

#include "api/client.h"
#include "base/text.h"
#include "core/fail.h"

hf_status hf__client_ready(const hf_client *client, hf_error *error)
{
    if (client == NULL)
        return hf__fail(error, HF_EINVAL, "client is NULL");
    return hf__client_check(client, error);
}

hf_status hf__client_check_single(const hf_client *client, hf_error *error)
{
    if (client->server_count > 1)
        return hf__fail(error, HF_EINVAL,
                        "this is for one server, and the client has a quorum of %d",
                        client->server_count);
    return HF_OK;
}

hf__slice hf__client_name_call(hf_client *client, char *place)
{
    uint64_t number = atomic_fetch_add(&client->next_number, client->number_step);
    hf__format(place, HF__CALL_WORD_MAX, "%s:%" PRIu64, client->client_id, number);
    return hf__slice_text(place);
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
