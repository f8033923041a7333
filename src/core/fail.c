/* SPDX-License-Identifier: MIT */
/* See fail.h. */
#include "core/fail.h"

#include <stdarg.h>
#include <string.h>

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

static hf_status common_status(const hf_error *const *troubles, int count)
{
    hf_status status = count > 0 ? troubles[0]->status : HF_EUNAVAILABLE;
    for (int i = 0; i < count; i++) {
        if (troubles[i]->status == HF_EUNKNOWN)
            return HF_EUNKNOWN;
        if (troubles[i]->status != status)
            status = HF_EUNAVAILABLE;
    }
    return status;
}

/* At most `room` bytes of it, with three dots where the rest was. */
static size_t put_cut(char *place, const char *text, size_t room)
{
    size_t length = strlen(text);
    if (length <= room) {
        memcpy(place, text, length);
        return length;
    }
    size_t dots = room < 3 ? room : 3;
    memcpy(place, text, room - dots);
    memcpy(place + room - dots, "...", dots);
    return room;
}

/* What a short one leaves is shared by those behind it. */
static void append_each(char *text, size_t capacity, const hf_error *const *troubles, int count)
{
    size_t at = strlen(text);
    for (int i = 0; i < count; i++) {
        const char *between = i == 0 ? ": " : "; ";
        size_t share = (capacity - 1 - at) / (size_t)(count - i);
        if (share <= 2)
            break;
        at += put_cut(text + at, between, 2);
        at += put_cut(text + at, troubles[i]->text, share - 2);
    }
    text[at] = '\0';
}

hf_status hf__fail_each(hf_error *error, const hf_error *const *troubles, int count,
                        const char *what, ...)
{
    hf_status status = common_status(troubles, count);
    if (error == NULL)
        return status;
    va_list arguments;
    va_start(arguments, what);
    error->status = status;
    hf__vformat(error->text, sizeof(error->text), what, arguments);
    va_end(arguments);
    append_each(error->text, sizeof(error->text), troubles, count);
    return status;
}
