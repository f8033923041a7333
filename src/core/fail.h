/* SPDX-License-Identifier: MIT */
/* Filling the caller's hf_error. NULL is fine, as it is in the public calls. */
#ifndef HF_CORE_FAIL_H
#define HF_CORE_FAIL_H

#include <holdfast.h>

hf_status hf__ok(hf_error *error);
hf_status hf__fail(hf_error *error, hf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for what went wrong at several servers of a quorum: "<what>: <text>; <text>", in which
 * long texts are cut so that each is told. The status is the one that all have, or HF_EUNKNOWN if
 * one of them is, else HF_EUNAVAILABLE. */
hf_status hf__fail_each(hf_error *error, const hf_error *const *troubles, int count,
                        const char *what, ...) __attribute__((format(printf, 4, 5)));

#endif
