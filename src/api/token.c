/* SPDX-License-Identifier: MIT */
/* Tokens: a hold as a line of text, "1,<late>,<fence>,<last fence>,<lease ms>,<value>,<owner>".
 * Late is 1 if a copy of the acquire may still reach the server, which the release must prevent: for
 * as long as the longest lease that the hold has asked for, which the token says.
 * What is not a letter, a digit or one of ".:@/_-" is written as %XX, so that shells leave it
 * alone. */
#include <string.h>

#include "api/client.h"
#include "base/text.h"
#include "core/fail.h"
#include "core/holder.h"

enum { PART_MAX = 512, PARTS = 7, LATE_AT = 2 };

#define FENCE_MAX ((UINT64_C(1) << 53) - 1)

typedef struct token_parts {
    uint64_t late, fence, fence_top, lease_ms;
    char value[PART_MAX], owner[PART_MAX];
    size_t value_length, owner_length;
} token_parts;

/* ---- Writing ---- */

static char *put_encoded(char *place, hf__slice text)
{
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.bytes[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c != '\0' && strchr(".:@/_-", c) != NULL);
        if (plain)
            *place = (char)c;
        else
            hf__format(place, 4, "%%%02X", c);
        place += plain ? 1 : 3;
    }
    return place;
}

static void write_token(const hf_hold *hold, char *place)
{
    hf__format(place, HF_TOKEN_MAX, "1,0,%llu,%llu,%lld,", (unsigned long long)hf__hold_fence(hold),
               (unsigned long long)hf__hold_fence_top(hold),
               (long long)hf__span_to_ms(hf__hold_longest_lease(hold)));
    char *end = put_encoded(place + strlen(place), hf__hold_value_text(hold));
    *end++ = ',';
    *put_encoded(end, hf__hold_owner_text(hold)) = '\0';
}

/* ---- Reading ---- */

static bool read_encoded(hf__slice text, char *place, size_t *length)
{
    *length = 0;
    for (size_t i = 0; i < text.length; i++) {
        int code = (unsigned char)text.bytes[i];
        if (code == '%') {
            code = hf__percent(text.bytes + i, text.length - i);
            i += 2;
        }
        if (code < 0 || *length == PART_MAX)
            return false;
        place[(*length)++] = (char)code;
    }
    return true;
}

static bool read_token(const char *text, token_parts *t)
{
    hf__slice parts[PARTS];
    size_t count = 0;
    uint64_t version;
    for (const char *at = text; count < PARTS; at += parts[count++].length + 1) {
        parts[count] = (hf__slice){at, strcspn(at, ",")};
        if ((at[parts[count].length] == '\0') != (count == PARTS - 1))
            return false;
    }
    return hf__parse_decimal(parts[0].bytes, parts[0].length, 1, &version) && version == 1 &&
           hf__parse_decimal(parts[1].bytes, parts[1].length, 1, &t->late) &&
           hf__parse_decimal(parts[2].bytes, parts[2].length, FENCE_MAX, &t->fence) &&
           hf__parse_decimal(parts[3].bytes, parts[3].length, FENCE_MAX, &t->fence_top) &&
           hf__parse_decimal(parts[4].bytes, parts[4].length, HF_MS_MAX, &t->lease_ms) &&
           read_encoded(parts[5], t->value, &t->value_length) &&
           read_encoded(parts[6], t->owner, &t->owner_length) && t->fence > 0 &&
           t->fence <= t->fence_top && t->lease_ms >= HF_LEASE_MIN_MS &&
           t->owner_length <= HF_OWNER_MAX &&
           hf__holder_is_value((hf__slice){t->value, t->value_length});
}

/* ---- The calls ---- */

hf_status hf_detach(hf_hold **hold, char *token, hf_error *error)
{
    if (hold == NULL || *hold == NULL || token == NULL)
        return hf__fail(error, HF_EINVAL, "%s is NULL", token == NULL ? "token" : "hold");
    hf_client *client = hf__hold_client(*hold);
    bool late = false;
    token[0] = '\0';
    if (!hf__driver_forked(client->driver))
        write_token(*hold, token);
    hf_status status = hf__driver_detach(client->driver, *hold, &late);
    if (status != HF_OK)
        token[0] = '\0';
    else if (late)
        token[LATE_AT] = '1';
    if (status == HF_EINVAL)
        return hf__fail(error, status, "the hold was re-entered: release the other handles first");
    *hold = NULL;
    hf__client_release(client);
    return hf__plain(error, status);
}

static hf_status run_attach(hf_client *client, hf_hold *fresh, hf_hold **hold, hf_error *error)
{
    hf__call call = {.kind = HF__CALL_ATTACH, .hold = fresh, .lease = hf__hold_lease(fresh)};
    atomic_fetch_add(&client->references, 1); /* the hold's */
    hf_status status = hf__driver_call(client->driver, &call);
    if (!call.taken)
        hf__hold_drop(fresh); /* never started */
    if (status == HF_OK)
        *hold = fresh;
    else
        hf__client_release(client);
    return hf__call_outcome(error, status, &call);
}

static hf_status attach(hf_client *client, const char *name, const token_parts *t,
                        hf_acquire_options *options, hf_hold **hold, hf_error *error)
{
    hf__wish wish = hf__client_wish(client, name, options, true);
    wish.value = (hf__slice){t->value, t->value_length};
    wish.owner = (hf__slice){t->owner, t->owner_length};
    wish.late = t->late == 1;
    wish.fence = t->fence;
    wish.fence_top = t->fence_top;
    wish.lease_before = hf__span_ms((int64_t)t->lease_ms);
    wish.listens_later = false;
    hf_hold *fresh = hf__hold_new(&wish);
    if (fresh == NULL)
        return hf__fail(error, HF_ENOMEM, "out of memory");
    hf__hold_set_client(fresh, client);
    return run_attach(client, fresh, hold, error);
}

hf_status hf_attach(hf_client *client, const char *name, const char *text,
                    const hf_acquire_options *options, hf_hold **hold, hf_error *error)
{
    HF__VISIT(client);
    hf_acquire_options checked, given = {.size = sizeof(given)};
    token_parts t;
    if (hold == NULL)
        return hf__fail(error, HF_EINVAL, "hold is NULL");
    *hold = NULL;
    if (client == NULL)
        return hf__fail(error, HF_EINVAL, "client is NULL");
    if (text == NULL || strnlen(text, HF_TOKEN_MAX) == HF_TOKEN_MAX || !read_token(text, &t))
        return hf__fail(error, HF_EINVAL, "that is not a token");
    hf_status status = hf__client_check(client, error);
    if (status == HF_OK && options != NULL)
        status = hf__acquire_options_copy(options, &given, error);
    if (given.lease_ms == 0)
        given.lease_ms = (int64_t)t.lease_ms;
    if (status == HF_OK)
        status = hf__client_prepare(client, name, &given, &checked, error);
    if (status != HF_OK)
        return status;
    return attach(client, name, &t, &checked, hold, error);
}

size_t hf_owner(const hf_hold *hold, char *place, size_t capacity)
{
    hf__slice owner = hold != NULL ? hf__hold_owner_text(hold) : (hf__slice){NULL, 0};
    if (hold != NULL && owner.length == 0)
        owner = hf__hold_value_text(hold);
    size_t count = owner.length < capacity ? owner.length : capacity - 1;
    if (capacity > 0) {
        if (count > 0)
            memcpy(place, owner.bytes, count);
        place[count] = '\0';
    }
    return owner.length;
}
