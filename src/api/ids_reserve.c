/* SPDX-License-Identifier: MIT */
/* Reserves a block of ids at the servers; see core/ids.h for what is asked and what answers mean.
 * One server is asked once. On a quorum it takes the lock of that name, which is an ordinary one
 * but for its name, and two questions under its fence. The lock makes it likely that nobody is in
 * the way; the fence makes it sure. So nothing depends on the lock still being ours when the second
 * answer is in, and it is given back without waiting.
 *
 * Whatever a server says, a block that is not behind all that we have ever been given is nobody's.
 */
#include <string.h>

#include "api/ids.h"
#include "core/fail.h"
#include "net/clock.h"

enum { LOCK_LEASE_MS = 5000 };

/* ---- One server ---- */

static hf_status ask_one(hf_ids *ids, int64_t seen, int64_t count, hf__instant ends,
                         hf__ids_block *block, hf_error *error)
{
    hf__answer answer = {0};
    hf__query *query = hf__ids_ask(&ids->config, seen, count);
    hf_status status = hf__client_run_until(ids->client, query, &answer, ends, error);
    hf__buffer_free(&answer.value);
    if (status != HF_OK)
        return status;
    return hf__ids_ask_outcome(&ids->config, &answer.numbers, count, block, error);
}

/* ---- A quorum ---- */

static int64_t left_ms(hf__instant ends)
{
    return hf__span_to_ms(hf__between(hf__clock_now(), ends));
}

static hf_status lock(hf_ids *ids, hf__instant ends, hf_hold **hold, hf_error *error)
{
    char name[HF_IDS_NAME_MAX + HF__IDS_LOCK_EXTRA];
    int64_t longest_ms = ids->client->max_lease_ms, wait_ms = left_ms(ends);
    int64_t lease_ms = LOCK_LEASE_MS + ids->client->drift_ms;
    hf_acquire_options options, wanted = {.size = sizeof(wanted),
                                          .name_length = hf__ids_lock_name(name, ids->config.name),
                                          .lease_ms = lease_ms < longest_ms ? lease_ms : longest_ms,
                                          .no_renewal = true,
                                          .wait_ms = wait_ms > 0 ? wait_ms : 1};
    hf_status status = hf__acquire_options_read(ids->client, &wanted, &options, error);
    if (status != HF_OK)
        return status;
    hf_hold *fresh = hf__client_new_hold(ids->client, name, &options, true);
    if (fresh == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    return hf__client_acquire(ids->client, fresh, &options, hold, error);
}

static hf_status ask_all(hf_ids *ids, hf__query *query, hf__numbers *said, hf__instant ends,
                         hf_error *error)
{
    hf__answer answer = {.by_server = said};
    memset(said, 0, HF_SERVERS_MAX * sizeof(*said));
    hf_status status = hf__client_run_until(ids->client, query, &answer, ends, error);
    hf__buffer_free(&answer.value);
    return status;
}

static hf_status ask_under_lock(hf_ids *ids, uint64_t fence, int64_t seen, int64_t count,
                                hf__instant ends, hf__ids_block *block, hf_error *error)
{
    const hf__ids_config *config = &ids->config;
    int servers = ids->client->server_count;
    hf__numbers said[HF_SERVERS_MAX];
    hf__ids_choice choice;
    hf_status status = ask_all(ids, hf__ids_ask_votes(config, fence), said, ends, error);
    if (status == HF_OK)
        status = hf__ids_choose(config, said, servers, seen, count, &choice, error);
    if (status == HF_OK)
        status = ask_all(ids, hf__ids_keep(config, fence, &choice), said, ends, error);
    if (status == HF_OK)
        status = hf__ids_keep_outcome(config, said, servers, error);
    if (status == HF_OK)
        *block = choice.block;
    return status;
}

/* HF_EBUSY is for those who would rather do something else. Here nobody can. */
static hf_status ask_quorum(hf_ids *ids, int64_t seen, int64_t count, hf__instant ends,
                            hf__ids_block *block, hf_error *error)
{
    hf_hold *hold = NULL;
    hf_status status;
    do {
        status = lock(ids, ends, &hold, error);
        if (status == HF_OK)
            status = ask_under_lock(ids, hf_fence(hold), seen, count, ends, block, error);
        (void)hf_release_nowait(&hold);
    } while (status == HF_EBUSY && left_ms(ends) > 0);
    if (status == HF_EBUSY)
        return hf__fail(error, HF_EUNAVAILABLE, "others were reserving ids all the time");
    return status;
}

/* ---- Both ---- */

static void remember(hf_ids *ids, int64_t behind)
{
    int_fast64_t seen = atomic_load(&ids->seen);
    while (seen < behind && !atomic_compare_exchange_weak(&ids->seen, &seen, behind))
        continue;
}

hf_status hf__ids_reserve(hf_ids *ids, int64_t count, hf__instant ends, hf__ids_block *block,
                          hf_error *error)
{
    int64_t seen = atomic_load(&ids->seen);
    hf_status status = hf__client_check(ids->client, error);
    if (status == HF_OK)
        status = ids->client->server_count == 1 ? ask_one(ids, seen, count, ends, block, error)
                                                : ask_quorum(ids, seen, count, ends, block, error);
    if (status != HF_OK)
        return status;
    if (block->first <= 0 || block->first < seen || block->count != count)
        return hf__fail(error, HF_ESERVER, "the server gives out ids for a second time");
    remember(ids, block->first + count);
    return HF_OK;
}
