/* SPDX-License-Identifier: MIT */
/* The client as the files of this room see it. */
#ifndef HF_API_CLIENT_H
#define HF_API_CLIENT_H

#include <stdatomic.h>

#include "net/driver.h"
#include "net/tls.h"

struct hf_client {
    /* The application's reference, gone with hf_close(), one for each hold in its hands, and one
     * for each call that is under way. */
    atomic_uint references;
    hf__driver *driver;
    hf__url servers[HF_SERVERS_MAX];
    hf__tls *tls[HF_SERVERS_MAX]; /* NULL: none */
    int server_count;
    char *password_file; /* NULL: none */
    char *side_prefix;
    char *prefix;
    size_t prefix_length;
    int64_t max_lease_ms;
    int64_t drift_ppm;
    int64_t drift_ms;
    int64_t reply_timeout_ms;
    int64_t call_timeout_ms;
    bool own_loop;
    bool fair;
    char client_id[33];
    char host[65];
    uint64_t pid;
    atomic_uint_fast64_t next_number; /* of a hold, or of a call that has a word of its own */
    uint64_t number_step;             /* from one to the next */
};

static inline hf__slice hf__client_prefix(const hf_client *client)
{
    return (hf__slice){client->prefix, client->prefix_length};
}

void hf__client_release(hf_client *client); /* drops a reference */

/* A call keeps the memory of its client until it returns, also if hf_close() comes and goes
 * meanwhile: the first line of every public function that is handed a client. NULL is fine. */
#define HF__VISIT(client) \
    hf_client *visited __attribute__((cleanup(hf__visit_end))) = hf__visit_begin(client)

hf_client *hf__visit_begin(hf_client *client);
void hf__visit_end(hf_client **visited);

/* The status, and in `error` what it says by itself. */
hf_status hf__plain(hf_error *error, hf_status status);

/* What forbids a call that waits: HF_OK, HF_EFORKED or HF_EDEADLK, and says so in `error`. */
hf_status hf__client_check(const hf_client *client, hf_error *error);

/* errand.c: the same, and HF_EINVAL if there is no client. */
hf_status hf__client_ready(const hf_client *client, hf_error *error);
/* errand.c: HF_OK, or HF_EINVAL for a quorum. */
hf_status hf__client_check_single(const hf_client *client, hf_error *error);

enum { HF__CALL_WORD_MAX = 32 + 1 + 20 + 1 }; /* client id, number, NUL */

/* errand.c: a word that no other call, of whatever client, has; ends with NUL. */
hf__slice hf__client_name_call(hf_client *client, char *place);
/* errand.c: asks and waits for the answer. Takes the query in any case; NULL: out of memory. */
hf_status hf__client_run(hf_client *client, hf__query *query, hf__answer *answer, hf_error *error);
/* errand.c: the same, and not longer than that. */
hf_status hf__client_run_until(hf_client *client, hf__query *query, hf__answer *answer,
                               hf__instant ends, hf_error *error);
/* errand.c: the same, because of a hold, which is not passed on to another thread of this client if
 * it stays unknown what came of it. */
hf_status hf__client_run_for(hf_client *client, hf_hold *hold, hf__query *query, hf__answer *answer,
                             hf_error *error);

/* hold.c: a hold for one acquire, with checked options; a lone one has an owner of its own and is
 * never re-entered. NULL: out of memory. */
hf_hold *hf__client_new_hold(hf_client *client, const char *name, const hf_acquire_options *options,
                             bool lone);
/* hold.c: runs that acquire. Takes the hold in any case. */
hf_status hf__client_acquire(hf_client *client, hf_hold *fresh, const hf_acquire_options *options,
                             hf_hold **hold, hf_error *error);
/* hold.c: options and name are checked, and who listens will be told: HF_OK, or why not. */
hf_status hf__client_prepare(hf_client *client, const char *name, const hf_acquire_options *options,
                             hf_acquire_options *checked, hf_error *error);
/* hold.c: what it asks for. */
hf__wish hf__client_wish(hf_client *client, const char *name, const hf_acquire_options *options,
                         bool lone);
/* hold.c: the call that acquires it. */
hf__call hf__client_new_call(const hf_client *client, hf_hold *hold,
                             const hf_acquire_options *options);
/* hold.c: what a call came to, for its caller. */
hf_status hf__call_outcome(hf_error *error, hf_status status, const hf__call *call);

/* cancel.c: a call is known to its cancel (which may be NULL) while it runs. */
typedef struct hf__cancel_entry {
    hf__node node;
    hf__driver *driver;
    hf__call *call;
    bool told; /* that the cancel was fired */
    bool being_told;
} hf__cancel_entry;

void hf__cancel_attach(hf_cancel *cancel, hf__cancel_entry *entry);
void hf__cancel_detach(hf_cancel *cancel, hf__cancel_entry *entry);

/* options.c: copies a struct that begins with its size, whatever that is; NULL: all zero. HF_OK or
 * HF_EINVAL. */
hf_status hf__struct_read(const void *given, void *options, size_t size, hf_error *error);
/* options.c: NULL options are all zero. HF_EINVAL with a text that names the limit. */
hf_status hf__client_options_read(const hf_client_options *given, hf_client_options *options,
                                  hf_error *error);
hf_status hf__acquire_options_read(const hf_client *client, const hf_acquire_options *given,
                                   hf_acquire_options *options, hf_error *error);
/* Only the struct, whatever its size; its values are not looked at. */
hf_status hf__acquire_options_copy(const hf_acquire_options *given, hf_acquire_options *options,
                                   hf_error *error);
hf_status hf__lease_check(const hf_client *client, int64_t lease_ms, hf_error *error);
/* *length 0: up to the NUL; it is filled in. */
hf_status hf__name_check(const hf_client *client, const char *name, size_t *length,
                         hf_error *error);

#endif
