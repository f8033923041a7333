/* SPDX-License-Identifier: MIT */
/* See alike.h. What must differ between a real server and a model: TIME, CLIENT ID, and of INFO
 * everything but role, version and the form of run_id. What may differ a little: times, by the
 * moment that lies between the clocks of the two, and by 2 ms for rounding. Everything else is
 * compared to the byte, errors too.
 */
#include "alike.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/scripts.h"

enum { MS_DIGITS = 13, US_DIGITS = 16, EXPIRIES_LEAST_MS = 1000 };

#define IDS_IN_SECOND 2147000000LL /* as ids.lua counts them */

/* ---- Replies as text ---- */

void alike_show_bytes(char **at, const char *end, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count && end - *at > 8; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        *at += snprintf(*at, 8, isprint(byte) ? "%c" : "\\x%02x", byte);
    }
}

static void show_reply(char **at, const char *end, const redisReply *reply)
{
    if (end - *at < 40)
        return;
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        *at += snprintf(*at, 32, ":%lld", reply->integer);
        break;
    case REDIS_REPLY_NIL:
        *at += snprintf(*at, 32, "(nil)");
        break;
    case REDIS_REPLY_ARRAY:
        *at += snprintf(*at, 32, "*%zu[", reply->elements);
        for (size_t i = 0; i < reply->elements; i++) {
            show_reply(at, end, reply->element[i]);
            *at += snprintf(*at, 4, " ");
        }
        *at += snprintf(*at, 4, "]");
        break;
    default:
        *at += snprintf(*at, 4, "%c",
                        reply->type == REDIS_REPLY_ERROR    ? '-'
                        : reply->type == REDIS_REPLY_STATUS ? '+'
                                                            : '$');
        alike_show_bytes(at, end, reply->str, reply->len);
    }
}

void alike_show(const redisReply *reply, char text[ALIKE_TEXT_MAX])
{
    char *at = text;
    show_reply(&at, text + ALIKE_TEXT_MAX - 8, reply);
}

/* ---- Same or not ---- */

static bool close_enough(int64_t slack_ms, double a, double b, double unit)
{
    double off = a > b ? a - b : b - a;
    return off <= (double)(TOLERANCE_MS + slack_ms) / unit + (unit > 1 ? 1 : 0);
}

static size_t digits_at(const char *text)
{
    return strspn(text, "0123456789");
}

/* Texts with times in them, which are known by their digits: 13 for milliseconds (expiries, records
 * of waiters), 16 for microseconds (fences, also in messages). All else is the same. */
static bool same_time_text(int64_t slack_ms, const char *real, const char *model)
{
    while (*real != '\0') {
        size_t digits = digits_at(real);
        if (digits == 0 && *real++ != *model++)
            return false;
        if (digits == 0)
            continue;
        double unit = digits == US_DIGITS ? 0.001 : 1;
        bool timed = digits == MS_DIGITS || digits == US_DIGITS;
        if (digits_at(model) != digits ||
            (timed && !close_enough(slack_ms, strtod(real, NULL), strtod(model, NULL), unit)) ||
            (!timed && strncmp(real, model, digits) != 0))
            return false;
        real += digits;
        model += digits;
    }
    return true;
}

static bool same_text(int64_t slack_ms, const redisReply *real, const redisReply *model)
{
    if (real->len == model->len && memcmp(real->str, model->str, real->len) == 0)
        return true;
    return real->len == model->len && real->type == REDIS_REPLY_STRING &&
           same_time_text(slack_ms, real->str, model->str);
}

/* Which integers are times: none if `unit` is 0, else those from `least` on, which count so many ms
 * each; fences count us. */
typedef struct timing {
    double unit;
    long long least;
} timing;

static bool same_integer(int64_t slack_ms, long long real, long long model, timing how)
{
    const long long from = 1000000000000000;
    bool fence = real >= from || real <= -from; /* llabs() has no answer for the least of all */
    if (real == model)
        return true;
    if (how.unit <= 0 || (real < 0) != (model < 0))
        return false;
    if (!fence && (real < how.least || model < how.least))
        return false;
    return close_enough(slack_ms, (double)real, (double)model, fence ? 0.001 : how.unit);
}

static bool same(int64_t slack_ms, const redisReply *real, const redisReply *model, timing how)
{
    if (real->type != model->type)
        return false;
    if (real->type == REDIS_REPLY_NIL)
        return true;
    if (real->type == REDIS_REPLY_INTEGER)
        return same_integer(slack_ms, real->integer, model->integer, how);
    if (real->type != REDIS_REPLY_ARRAY)
        return same_text(slack_ms, real, model);
    if (real->elements != model->elements)
        return false;
    for (size_t i = 0; i < real->elements; i++)
        if (!same(slack_ms, real->element[i], model->element[i], how))
            return false;
    return true;
}

bool alike(int64_t slack_ms, const redisReply *real, const redisReply *model)
{
    return same(slack_ms, real, model, (timing){0, 0});
}

static int by_text(const void *a, const void *b)
{
    return strcmp((*(redisReply *const *)a)->str, (*(redisReply *const *)b)->str);
}

static void sort_texts(const redisReply *array)
{
    if (array->elements > 1)
        qsort(array->element, array->elements, sizeof(array->element[0]), by_text);
}

/* The order of a SCAN is nobody's promise. */
static bool same_scan(const redisReply *real, const redisReply *model)
{
    if (real->elements != 2 || model->elements != 2)
        return false;
    sort_texts(real->element[1]);
    sort_texts(model->element[1]);
    return alike(0, real, model);
}

/* After a jump the sequence of ids begins where the second is, and goes on from there. In between,
 * one of the clocks may have begun a new second. */
static bool same_sequence(int64_t slack_ms, long long real, long long model)
{
    long long off = llabs(real - model) % IDS_IN_SECOND;
    off = off < IDS_IN_SECOND - off ? off : IDS_IN_SECOND - off;
    return off <= (2 * TOLERANCE_MS + slack_ms) * (IDS_IN_SECOND / 1000);
}

/* What scripts of ids say; `sequence` is where one may be. */
static bool same_ids(int64_t slack_ms, const redisReply *real, const redisReply *model,
                     size_t sequence)
{
    timing how = {1, EXPIRIES_LEAST_MS};
    bool reserved = real->elements > sequence && real->element[0]->integer > 0;
    if (real->elements != model->elements)
        return false;
    for (size_t i = 0; i < real->elements; i++) {
        const redisReply *a = real->element[i], *b = model->element[i];
        bool alike = reserved && i == sequence ? same_sequence(slack_ms, a->integer, b->integer)
                                               : same(slack_ms, a, b, how);
        if (!alike)
            return false;
    }
    return true;
}

static bool is_script(const hf__slice *words, int count, hf__script_id script)
{
    return count > 1 && sim_is(words[0], "EVALSHA") && sim_is(words[1], hf__scripts[script].sha1);
}

static bool same_line(const redisReply *real, const redisReply *model, const char *field)
{
    const char *a = strstr(real->str, field);
    const char *b = strstr(model->str, field);
    if (a == NULL || b == NULL)
        return a == b;
    size_t length = strcspn(b, "\r");
    return strcspn(a, "\r") == length &&
           (strcmp(field, "run_id:") == 0 || strncmp(a, b, length) == 0);
}

static bool same_info(const redisReply *real, const redisReply *model)
{
    return real->type == REDIS_REPLY_STRING && model->type == REDIS_REPLY_STRING &&
           same_line(real, model, "role:") && same_line(real, model, "redis_version:") &&
           same_line(real, model, "run_id:") && same_line(real, model, "\nmaxmemory:") &&
           same_line(real, model, "\nmaxmemory_policy:") && same_line(real, model, "aof_enabled:");
}

bool alike_replies(int64_t slack_ms, const hf__slice *words, int count, const redisReply *real,
                   const redisReply *model)
{
    bool is_error = real->type == REDIS_REPLY_ERROR || model->type == REDIS_REPLY_ERROR;
    if (!is_error && sim_is(words[0], "TIME"))
        return model->type == REDIS_REPLY_ARRAY && model->elements == 2;
    if (!is_error && sim_is(words[0], "INFO"))
        return same_info(real, model);
    if (!is_error && sim_is(words[0], "CLIENT") && count == 2 && sim_is(words[1], "ID"))
        return model->type == REDIS_REPLY_INTEGER;
    if (!is_error && sim_is(words[0], "SCAN"))
        return same_scan(real, model);
    timing how = {0, 0};
    if (sim_is(words[0], "PTTL"))
        how.unit = 1;
    else if (sim_is(words[0], "TTL"))
        how.unit = 1000;
    else if (sim_is(words[0], "EVALSHA"))
        how.unit = 1;
    /* Scripts tell places and counts as well, and all that they tell of expiries is far away; only
     * inspect tells how long somebody has waited. */
    if (sim_is(words[0], "EVALSHA") && !is_script(words, count, HF__SCRIPT_INSPECT))
        how.least = EXPIRIES_LEAST_MS;
    bool arrays = real->type == REDIS_REPLY_ARRAY && model->type == REDIS_REPLY_ARRAY;
    if (arrays && is_script(words, count, HF__SCRIPT_IDS))
        return same_ids(slack_ms, real, model, 1);
    if (arrays && is_script(words, count, HF__SCRIPT_IDS_VOTE))
        return same_ids(slack_ms, real, model, 3);
    return same(slack_ms, real, model, how);
}
