/* SPDX-License-Identifier: MIT */
/* Who holds a lock, read from the answer to inspect. */
#ifndef HF_CORE_HOLDER_H
#define HF_CORE_HOLDER_H

#include <holdfast.h>

#include <stdbool.h>

#include "resp/encode.h"
#include "resp/reader.h"

/* Fills it but for the name; false: the reply is malformed. */
bool hf__holder_read(const hf__reply *reply, hf_inspection *inspection);

/* Who it names; empty if it is a foreign value. */
hf_holder hf__holder_of(hf__slice value);

/* Whether it looks like the value of a hold. */
bool hf__holder_is_value(hf__slice value);

#endif
