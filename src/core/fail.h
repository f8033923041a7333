/* SPDX-License-Identifier: MIT */
/* Filling the caller's hf_error. NULL is fine, as it is in the public calls. */
#ifndef HF_CORE_FAIL_H
#define HF_CORE_FAIL_H

#include <holdfast.h>

hf_status hf__ok(hf_error *error);
hf_status hf__fail(hf_error *error, hf_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
