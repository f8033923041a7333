/* SPDX-License-Identifier: MIT
 *
 * holdfast_ids.h: numbers that nobody else gets, over all processes and machines, in the order of
 * time.
 *
 *     hf_ids *ids;
 *     int64_t id;
 *     hf_ids_open(client, "order", NULL, &ids, &error);
 *     if (hf_ids_next(ids, &id, &error) == HF_OK)
 *         ... a key for the row ...
 *     hf_ids_close(ids);
 *
 * An ID is a positive number of 63 bits, which fits a BIGINT and a Java long: a TIME PART of 31
 * bits, seconds since an epoch, and a SEQUENCE of 32 bits within the second. It is the server's
 * time, taken when the id was reserved there; a few seconds ahead of it for a while after the first
 * use of a name and after a change of the server, see below. It never runs backwards, whatever
 * happens to clocks; at most it stands still until they have caught up.
 *
 * There are two kinds of generators. An ORDERED one reserves each id at the server, so that ids
 * grow over all processes: whoever asks after another one was answered, anywhere, gets a larger id.
 * Threads that ask together share a round trip. A LEASED one, the default, reserves blocks of ids
 * ahead and hands them out without a message, tens of millions a second: they are unique over all
 * processes, and grow within each. The size of blocks follows the rate, so that one lasts for about
 * a second, and ids that were reserved more than 10 seconds ago (while the machine was awake) are
 * dropped rather than handed out, unless no new ones can be had. Both kinds may be used for one
 * name, in any number of processes.
 *
 * Unique means: no two calls for one name get the same id, also after crashes, after the server was
 * restarted and has forgotten everything, after a replica took its place that had not heard of the
 * last ids, and after clocks were set. This takes for granted, and docs/safety.md has it in full:
 *   - clocks of servers that follow each other are at most max_skew_s apart, also before and after
 *     a restart. A server process that does not know where the last one stopped begins ahead of
 *     its clock, by 2 * max_skew_s + 1 seconds; and never below the highest id that the generator
 *     that asks it has ever been given
 *   - a server that has forgotten is first asked for ids more than max_skew_s after the one before
 *     it was first asked, or else first by a generator that has seen the newest ids. (If both have
 *     the same clock, 10 ms will do.)
 *   - all who use a name have the same epoch_s (which is checked) and max_skew_s
 *
 * On a quorum a block is reserved under a lock that the name has for this, and counts when a
 * majority of the servers has confirmed it with the fence of that lock. So it takes three round
 * trips, and survives what locks do.
 *
 * Threads: every function may be called from any thread, except that hf_ids_close() must be the
 * last. fork(): in a child every call says HF_EFORKED; it never hands out the parent's ids. */
#ifndef HOLDFAST_IDS_H
#define HOLDFAST_IDS_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_IDS_EPOCH     1767225600 /* the default: 2026-01-01 00:00 UTC; lasts until 2094        */
#define HF_IDS_NAME_MAX  512        /* bytes of key prefix + name                                 */
#define HF_IDS_KEY_MIN   16         /* bytes of a key                                             */
#define HF_IDS_KEY_MAX   64
#define HF_IDS_BATCH_MAX 1048576 /* ids in one call                                            */
#define HF_IDS_SKEW_MAX  3600    /* seconds                                                    */

typedef struct hf_ids hf_ids;

/* Zero means default. Set `size`, or use HF_IDS(.ordered = true). */
typedef struct hf_ids_options {
    size_t size;
    size_t name_length; /* bytes in the name; 0: up to its NUL                                    */
    bool ordered;       /* each id is reserved at the server; default: leased                     */
    bool by_thread;     /* leased: ids grow within each thread only, not from one to another, and
                           threads do not slow each other down                                    */
    int64_t epoch_s;    /* when the time part is 0, in seconds since 1970; default HF_IDS_EPOCH   */
    int64_t max_skew_s; /* how far clocks of servers may be apart, at most HF_IDS_SKEW_MAX;
                           default 2                                                              */
    /* Hard to guess: ids are shuffled with this secret, in a way that only its owners can undo, so
     * that one who sees some of them cannot tell how many there are, nor guess others. They are as
     * unique as before, but do not grow. All who use or parse them need the same key. It is not
     * encryption: it hides, from people without means, what is no great secret. */
    const void *key; /* default: none */
    size_t key_length;
} hf_ids_options;

#define HF_IDS(...) (&(hf_ids_options){.size = sizeof(hf_ids_options), __VA_ARGS__})

/* Opens a generator: any name as for a lock, of at most HF_IDS_NAME_MAX bytes with the prefix.
 * Names of ids and of locks have nothing to do with each other. No byte is sent. It may be closed
 * before or after its client, of which it is a part: with hf_close(), calls that wait end. A leased
 * one has a thread that fetches blocks ahead (not with own_loop: there, the call that uses up half
 * of a block fetches the next one). HF_OK: *ids is yours. HF_EINVAL, HF_ENOMEM, HF_ECLOSED,
 * HF_EFORKED: it is NULL. */
HF_API hf_status hf_ids_open(hf_client *client, const char *name, const hf_ids_options *options,
                             hf_ids **ids, hf_error *error);
/* NULL is fine. Waits for a block that is being fetched, for at most call_timeout_ms. */
HF_API void hf_ids_close(hf_ids *ids);

/* The next id. Mostly without waiting if they are leased; never longer than call_timeout_ms of the
 * client. While the server is gone, a leased generator goes on with what it has fetched; then, or
 * if they are ordered, the call says so. Nothing is ever handed out twice: what was reserved and
 * not used, or reserved by a message whose answer was lost, is nobody's.
 *   HF_OK       *id is yours
 *   HF_EUNAVAILABLE, HF_EUNKNOWN   no server has reserved any in time; ask again
 *   HF_EINVAL   also: others use this name with another epoch
 *   HF_EDEADLK  it would have to wait, inside a callback
 *   HF_ESERVER  also: the epoch is used up
 *   HF_EUNSAFE  also: the server hides its run_id (INFO server), so that ids could come twice
 *   HF_EDENIED, HF_ENOMEM, HF_ECLOSED, HF_EFORKED */
HF_API hf_status hf_ids_next(hf_ids *ids, int64_t *id, hf_error *error);

/* `count` ids at once, each larger than the one before (without a key), at most HF_IDS_BATCH_MAX;
 * others may lie between them. All or nothing: unless HF_OK, the places are not to be used. */
HF_API hf_status hf_ids_next_batch(hf_ids *ids, int64_t *place, size_t count, hf_error *error);

typedef struct hf_id_parts {
    int64_t unix_s;    /* its time part, as seconds since 1970: when it was reserved, see above */
    uint32_t sequence; /* within that second */
    int64_t plain;     /* without the key: in the order of time */
} hf_id_parts;

/* What an id says, by the epoch and key of this generator. Asks nobody, so it cannot tell whether
 * the id was ever given out. HF_EINVAL: it is not positive. */
HF_API hf_status hf_ids_parse(const hf_ids *ids, int64_t id, hf_id_parts *parts, hf_error *error);

/* How many seconds are left until the time part is used up, by the local clock and by the ids that
 * were seen; then there are no more. 0 for NULL, and when it is over. */
HF_API int64_t hf_ids_life_s(const hf_ids *ids);

#ifdef __cplusplus
}
#endif

#endif
