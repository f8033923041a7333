/* SPDX-License-Identifier: MIT */
/* Guarded writes and values: orders, and what their answers come to. Pure. See holdfast_store.h for
 * the words. */
#ifndef HF_CORE_STORE_H
#define HF_CORE_STORE_H

#include <holdfast_store.h>

#include "core/core.h"

/* Fences and versions, and the longest time until a key expires: what Lua counts exactly. */
#define HF__STORE_NUMBER_MAX ((INT64_C(1) << 53) - 1)

typedef struct hf__store_writes {
    const hf_write *all; /* must outlive what is made of it */
    size_t count;
} hf__store_writes;

/* HF_OK, or HF_EINVAL: too many, or one that may not be; `lock`, which may be empty, and the
 * library's own keys are not to be written. */
hf_status hf__store_check(const hf__store_writes *writes, hf__slice side_prefix, hf__slice lock,
                          hf_error *error);

typedef struct hf__store_held { /* a hold, as the server knows it */
    hf__slice key, value, owner;
} hf__store_held;

/* `call` is a word that no other call has: by it a script knows copies of one from others. All
 * NULL: out of memory. */
hf__query *hf__store_write_held(const hf__store_held *held, hf__slice call,
                                const hf__store_writes *writes);
hf__query *hf__store_write_fenced(hf__slice prefix, hf__slice guard, hf__slice call, uint64_t fence,
                                  const hf__store_writes *writes);
hf__query *hf__store_read(hf__slice prefix, hf__slice name);
/* `bytes` NULL: it is deleted. */
hf__query *hf__store_write(hf__slice prefix, hf__slice name, hf__slice call, uint64_t expected,
                           hf__slice bytes);

/* What is said to each: the status that its call returns. */
hf_status hf__store_held_outcome(const hf__numbers *said, hf_error *error);
hf_status hf__store_fenced_outcome(const hf__numbers *said, uint64_t *newest, hf_error *error);
/* The bytes themselves are in the answer. */
hf_status hf__store_read_outcome(const hf__numbers *said, uint64_t *version, hf_error *error);
hf_status hf__store_write_outcome(const hf__numbers *said, uint64_t *version, hf_error *error);

#endif
