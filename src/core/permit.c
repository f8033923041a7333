/* SPDX-License-Identifier: MIT */
/* Which permission is missing. A server that denies something inside a script, or a key of one,
 * does not say what; so it is asked, by permissions.lua, which needs nothing but EVAL.
 *
 * The commands are asked about in the greeting, for the lock of whoever waits for the connection:
 * somebody who may take a lock and not give it back should learn that before. Later, and for keys,
 * the question is asked when a call was refused because of one, by the request that was refused: it
 * goes once more, as the question. An errand asks about its own keys, all others about those of
 * their lock. */
#include <string.h>

#include "base/text.h"
#include "core/fail.h"
#include "core/name.h"
#include "core/state.h"

enum { LETTERS = 4, SIDES = LETTERS + 1, WORDS_MAX = 5 + SIDES, SHOWN_MAX = 60, LIST_MAX = 150 };

static const char letters[] = "qfwh"; /* of the side keys */

/* The lock that a request is about; an empty key: none. */
static hf__slice key_of(const hf__request *request, unsigned *slot)
{
    if (request->kind == HF__REQUEST_QUERY) {
        const hf__query *query = hf__request_query(request);
        *slot = query->slot;
        return (hf__slice){query->bytes, query->key_length};
    }
    const hf_hold *hold = hf__request_hold(request);
    *slot = hold->slot;
    return hf__hold_key(hold);
}

static size_t begin(hf__slice *words, hf__slice what, hf__slice key)
{
    const hf__script *script = &hf__scripts[HF__SCRIPT_PERMISSIONS];
    words[0] = HF__SLICE("EVAL");
    words[1] = (hf__slice){script->body, script->length};
    words[2] = HF__SLICE("0");
    words[3] = what;
    words[4] = key;
    return 5;
}

static bool ask_about_lock(const hf__request *request, hf__slice what, hf__buffer *out)
{
    hf__slice words[WORDS_MAX];
    unsigned slot;
    size_t count = begin(words, what, key_of(request, &slot));
    return hf__resp_encode(out, words, count);
}

bool hf__permit_ask_commands(const hf__request *request, hf__buffer *out)
{
    return ask_about_lock(request, HF__SLICE("commands"), out);
}

static bool ask_keys(const hf__request *request, hf__buffer *out)
{
    char side[SIDES][HF_NAME_MAX + HF__SIDE_KEY_EXTRA];
    hf__slice words[WORDS_MAX];
    unsigned slot;
    hf__slice key = key_of(request, &slot);
    hf__slice prefix = hf__request_link(request)->core->config.side_prefix;
    size_t count = begin(words, HF__SLICE("keys"), key);
    for (int i = 0; i < LETTERS; i++) {
        size_t length = hf__side_key(side[i], prefix, letters[i], key, slot);
        words[count++] = (hf__slice){side[i], length};
    }
    if (!hf__is_quorum(hf__request_link(request)->core)) {
        size_t length = hf__slot_key(side[LETTERS], prefix, hf__slot_tags[slot]);
        words[count++] = (hf__slice){side[LETTERS], length};
    }
    return hf__resp_encode(out, words, count);
}

static bool ask_errand_keys(const hf__query *query, hf__buffer *out)
{
    hf__slice words[WORDS_MAX];
    size_t fixed = begin(words, HF__SLICE("keys"), (hf__slice){NULL, 0}) - 1;
    size_t count = fixed + hf__errand_key_count(query);
    size_t bytes = hf__errand_bytes(query);
    for (size_t i = 0; i < fixed; i++)
        bytes += words[i].length;
    if (!hf__resp_reserve(out, count, bytes))
        return false;
    hf__resp_begin(out, count);
    for (size_t i = 0; i < fixed; i++)
        hf__resp_word(out, words[i]);
    hf__errand_put_keys(query, out);
    return true;
}

static const hf__query *errand_of(const hf__request *request)
{
    const hf__query *query = request->kind == HF__REQUEST_QUERY ? hf__request_query(request) : NULL;
    return query != NULL && query->kind == HF__QUERY_ERRAND ? query : NULL;
}

bool hf__permit_ask_why(const hf__request *request, hf__buffer *out)
{
    const hf__query *errand = errand_of(request);
    if (request->asks_why == HF__WHY_KEY)
        return errand != NULL ? ask_errand_keys(errand, out) : ask_keys(request, out);
    return ask_about_lock(request, HF__SLICE("all"), out);
}

bool hf__permit_read(const hf__reply *reply, const char *server, const char *what, hf_error *error)
{
    char list[LIST_MAX] = "", shown[SHOWN_MAX];
    size_t length = 0;
    if (reply->kind != HF__REPLY_ARRAY || reply->count == 0)
        return false;
    for (size_t i = 0; i < reply->count; i++) {
        const hf__reply *denied = &reply->elements[i];
        if (denied->kind != HF__REPLY_TEXT)
            return false;
        hf__printable(shown, sizeof(shown), denied->text, denied->length);
        if (length + strlen(shown) + sizeof(", ...") >= sizeof(list)) {
            hf__format(list + length, sizeof(list) - length, ", ...");
            break;
        }
        hf__format(list + length, sizeof(list) - length, "%s%s", i > 0 ? ", " : "", shown);
        length = strlen(list);
    }
    hf__fail(error, HF_EDENIED, "%s denies us %s %s (docs/wire.md, Permissions)", server, what,
             list);
    return true;
}
