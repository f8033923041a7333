/* SPDX-License-Identifier: MIT */
/* See fail.h. */
#include "core/fail.h"

#include <stdarg.h>

#include "base/text.h"

hf_status hf__ok(hf_error *error)
{
    if (error != NULL)
        *error = (hf_error){.status = HF_OK};
    return HF_OK;
}

hf_status hf__fail(hf_error *error, hf_status status, const char *format, ...)
{
    if (error == NULL)
        return status;
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    hf__vformat(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    return status;
}
