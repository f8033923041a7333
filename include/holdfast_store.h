/* SPDX-License-Identifier: MIT
 *
 * holdfast_store.h: writes to Redis that are done only if they still may be. Two halves:
 *
 * GUARDED WRITES are the checking half of fencing. A process that was stopped for longer than its
 * lease does not know that its lock is somebody else's now; the store has to refuse what it writes.
 * For data in Redis these calls see to it in one step at the server; for SQL see docs/fencing.md.
 *
 * VALUES are compare-and-set: read a value with its version, write it if the version still holds.
 * No lock is needed, and no write is lost (optimistic locking).
 *
 * All calls are bounded by call_timeout_ms. HF_EUNAVAILABLE: nothing was written. HF_EUNKNOWN: it
 * may have been written; or it may still be, for as long as the hold stands or no larger fence has
 * come. Messages that the library repeats over a new connection count once. Any thread may call;
 * see holdfast.h for the rest. */
#ifndef HOLDFAST_STORE_H
#define HOLDFAST_STORE_H

#include <holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_WRITES_MAX     64    /* keys in one call                                               */
#define HF_VALUE_MAX      65536 /* bytes of a value, and of all values of one call                */
#define HF_VALUE_NAME_MAX 512   /* bytes of key prefix + name of a value, or of a guard           */

/* ---- Guarded writes -------------------------------------------------------------------------- */

typedef struct hf_write {
    const char *key; /* as it is, without the client's prefix; not "hf:..."                       */
    size_t key_length; /* 0: up to its NUL                                                        */
    const void *value; /* NULL: the key is deleted                                                */
    size_t value_length;
    int64_t expire_ms; /* 0: never; less than 2^53                                                */
} hf_write;

/* Writes all or nothing, in the given order: if the hold still stands at the server, in the same
 * step. So the data must be at the server that has the lock: one, not a quorum (HF_EINVAL). The
 * lock's own key and those of the library are not to be written (HF_EINVAL).
 *   HF_OK      written
 *   HF_ELOST   the hold has ended, nothing was written; it must still be released
 *   HF_EUNKNOWN  also: a first message was lost, and the hold had ended when it was repeated
 *   HF_EINVAL, HF_EUNAVAILABLE (such as a full server), HF_ESERVER, HF_EDENIED, ... */
HF_API hf_status hf_write_held(hf_hold *hold, const hf_write *writes, size_t count,
                               hf_error *error);

/* The same, and releases the hold in the same round trip; it is freed and the pointer cleared,
 * whatever comes of the write, except for HF_EINVAL and HF_EDEADLK, where nothing is done. What is
 * returned is the outcome of the write; a release that is not answered in time goes on by itself,
 * as after hf_release(). */
HF_API hf_status hf_write_held_and_release(hf_hold **hold, const hf_write *writes, size_t count,
                                           hf_error *error);

/* Writes all or nothing, unless somebody with a larger fence was there before: for a store that is
 * not where the lock is, and for locks of a quorum. The store keeps the largest fence that it has
 * seen under the guard's name (with the client's prefix); use one guard, such as the lock's name,
 * for all that the lock protects. Equal fences are the same holder, who may write again. The store
 * is one server, not a quorum (HF_EINVAL).
 *   HF_OK      written
 *   HF_ESTALE  a larger fence was there; *newest (which may be NULL) is that one. Nothing was
 *              written: somebody else has the lock now
 *   HF_EUNKNOWN  also: a first message was lost, and a larger fence was there when it was repeated
 *   HF_EINVAL, HF_EUNAVAILABLE, ... */
HF_API hf_status hf_write_fenced(hf_client *store, const char *guard, size_t guard_length,
                                 uint64_t fence, const hf_write *writes, size_t count,
                                 uint64_t *newest, hf_error *error);

/* ---- Values ---------------------------------------------------------------------------------- */

/* Reads a value and its version. `place` has room for `capacity` bytes; *length is how long the
 * value is, and what does not fit is left out. HF_OK, HF_EMISSING. One server, not a quorum
 * (HF_EINVAL). Any name will do: what is kept under it has nothing to do with a key or lock of that
 * name. */
HF_API hf_status hf_value_read(hf_client *client, const char *name, size_t name_length, void *place,
                               size_t capacity, size_t *length, uint64_t *version, hf_error *error);

/* Writes a value if its version is still `expected`; 0: if there is none. With bytes NULL it is
 * deleted. *version (which may be NULL) is its new version, larger than all it ever had, also after
 * it was deleted; or, with HF_ESTALE, the version that it has, 0: none.
 *   HF_OK      written
 *   HF_ESTALE  somebody else has written it since: read it again
 *   HF_EUNKNOWN  also: a first message was lost, and the value had another version when it was
 *              repeated: written by it, and by others since, or by others only
 *   HF_EINVAL, HF_EUNAVAILABLE, ... */
HF_API hf_status hf_value_write(hf_client *client, const char *name, size_t name_length,
                                const void *bytes, size_t length, uint64_t expected,
                                uint64_t *version, hf_error *error);

#ifdef __cplusplus
}
#endif

#endif
