/* SPDX-License-Identifier: MIT */
/* Values at the server, as people want to see them. Ours are
 * <client id>:<number>@<host>:<pid>/<thread>[/<label>]; anything else belongs to a program that
 * does not use this library, or is an owner's name. What comes from the server is somebody else's
 * bytes: it is checked, cut and made printable. */
#include "core/holder.h"

#include <string.h>

#include "base/text.h"
#include "core/state.h"

enum { ID_LENGTH = 32 };

/* Takes the text up to `end` off the front; false: it is not there. */
static bool take_until(hf__slice *rest, char end, hf__slice *part)
{
    const char *at = memchr(rest->bytes, end, rest->length);
    if (at == NULL)
        return false;
    *part = (hf__slice){rest->bytes, (size_t)(at - rest->bytes)};
    rest->length -= part->length + 1;
    rest->bytes = at + 1;
    return true;
}

static bool number_in(hf__slice digits, uint64_t *number)
{
    return hf__parse_decimal(digits.bytes, digits.length, UINT64_MAX, number);
}

static bool is_client_id(hf__slice id)
{
    for (size_t i = 0; i < id.length; i++)
        if (strchr("0123456789abcdef", id.bytes[i]) == NULL || id.bytes[i] == '\0')
            return false;
    return id.length == ID_LENGTH;
}

/* False: not one of our values. */
static bool read_value(hf__slice value, hf_holder *holder)
{
    hf__slice rest = value, id, number, host, pid, thread;
    if (!take_until(&rest, ':', &id) || !is_client_id(id) || !take_until(&rest, '@', &number) ||
        !take_until(&rest, ':', &host) || !take_until(&rest, '/', &pid))
        return false;
    if (!take_until(&rest, '/', &thread)) {
        thread = rest;
        rest.length = 0;
    }
    if (!number_in(number, &holder->number) || !number_in(pid, &holder->pid) ||
        !number_in(thread, &holder->thread))
        return false;
    hf__printable(holder->client_id, sizeof(holder->client_id), id.bytes, id.length);
    hf__printable(holder->host, sizeof(holder->host), host.bytes, host.length);
    hf__printable(holder->label, sizeof(holder->label), rest.bytes, rest.length);
    return true;
}

bool hf__holder_is_value(hf__slice value)
{
    hf_holder unused;
    return read_value(value, &unused);
}

hf_holder hf__holder_of(hf__slice value)
{
    hf_holder holder = {.client_id = ""};
    if (!read_value(value, &holder))
        holder = (hf_holder){.client_id = ""};
    return holder;
}

static void add_holder(hf_inspection *seen, hf__slice value, int64_t remaining_ms)
{
    if (seen->holder_count == HF_HOLDERS_MAX)
        return;
    seen->holders[seen->holder_count] = hf__holder_of(value);
    seen->holders[seen->holder_count++].remaining_ms = remaining_ms;
}

static void add_waiter(hf_inspection *seen, hf__slice value, int64_t waited_ms)
{
    if (seen->waiter_count == HF_WAITERS_MAX)
        return;
    seen->waiters[seen->waiter_count] = hf__holder_of(value);
    seen->waiters[seen->waiter_count++].waited_ms = waited_ms;
}

/* {value, ms, ...} */
static bool read_list(const hf__reply *list, hf_inspection *seen,
                      void (*add)(hf_inspection *, hf__slice, int64_t))
{
    if (list->kind != HF__REPLY_ARRAY || list->count % 2 != 0)
        return false;
    for (size_t i = 0; i < list->count; i += 2) {
        const hf__reply *value = &list->elements[i], *ms = &list->elements[i + 1];
        if (value->kind != HF__REPLY_TEXT || ms->kind != HF__REPLY_INTEGER)
            return false;
        add(seen, (hf__slice){value->text, value->length}, hf__sane_ms(ms->integer));
    }
    return true;
}

/* {value or nil, remaining ms, fence or '', live holders, {value, remaining ms, ...}, waiters,
 * {value, waited ms, ...}} */
bool hf__holder_read(const hf__reply *reply, hf_inspection *inspection)
{
    static const hf__reply_kind wanted[] = {HF__REPLY_TEXT,    HF__REPLY_INTEGER, HF__REPLY_TEXT,
                                            HF__REPLY_INTEGER, HF__REPLY_ARRAY,   HF__REPLY_INTEGER,
                                            HF__REPLY_ARRAY};
    enum { PARTS = sizeof(wanted) / sizeof(wanted[0]) };
    const hf__reply *parts = reply->elements;
    hf_inspection seen = {.held = false};
    if (reply->kind != HF__REPLY_ARRAY || reply->count != PARTS)
        return false;
    for (int i = 0; i < PARTS; i++)
        if (parts[i].kind != wanted[i] && !(i == 0 && parts[i].kind == HF__REPLY_NIL))
            return false;
    hf__parse_decimal(parts[2].text, parts[2].length, INT64_MAX, &seen.fence);
    hf__slice value = {parts[0].text, parts[0].length};
    seen.held = parts[0].kind == HF__REPLY_TEXT;
    if (seen.held) {
        seen.remaining_ms = hf__sane_ms(parts[1].integer);
        hf__printable(seen.owner, sizeof(seen.owner), value.bytes, value.length);
        seen.shared = parts[3].integer > 0 && !hf__holder_is_value(value);
        seen.hold_count = seen.shared ? (uint64_t)parts[3].integer : 1;
        if (!seen.shared)
            add_holder(&seen, value, seen.remaining_ms);
        else if (!read_list(&parts[4], &seen, add_holder))
            return false;
    }
    seen.queue_length = parts[5].integer > 0 ? (uint64_t)parts[5].integer : 0;
    if (!read_list(&parts[6], &seen, add_waiter))
        return false;
    *inspection = seen;
    return true;
}
