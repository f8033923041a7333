/* SPDX-License-Identifier: MIT */
/* What a server says about itself on a new connection, and whether it is fit to keep locks. Each
 * thing that is not as it should be is ignored, logged or a reason to refuse the server, as the
 * application has chosen; a warning is logged once for each server process, not for each
 * connection. */
#include <stdarg.h>
#include <string.h>

#include "base/mutant.h"
#include "base/text.h"
#include "core/checks.h"

enum {
    OLDEST_MAJOR = 6,
    OLDEST_MINOR = 2,
    CLOCK_OFFSET_MAX_S = 5,
    US_PER_S = 1000000,
    RUN_ID_MIN = 16,
    RUN_ID_MAX = 40
};

_Static_assert(sizeof(((hf__link *)0)->run_id) == RUN_ID_MAX + 1, "there is room for a run id");

/* Finds "field:value" in an INFO text; the value ends at the line's end. */
static hf__slice info_field(const hf__reply *reply, const char *field)
{
    size_t length = strlen(field);
    const char *line = reply->text;
    while (line != NULL) {
        if (strncmp(line, field, length) == 0 && line[length] == ':')
            return (hf__slice){line + length + 1, strcspn(line + length + 1, "\r\n")};
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return (hf__slice){NULL, 0};
}

static uint64_t number_field(const hf__reply *reply, const char *field)
{
    hf__slice value = info_field(reply, field);
    uint64_t number = 0;
    return hf__parse_decimal(value.bytes, value.length, INT64_MAX / 1000, &number) ? number : 0;
}

static bool is(hf__slice value, const char *text)
{
    return value.length == strlen(text) && memcmp(value.bytes, text, value.length) == 0;
}

/* The server is not as it should be. False: it is refused, and the connection has failed. */
static bool complain(hf__link *link, hf__check_kind kind, hf_status refusal, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

static bool complain(hf__link *link, hf__check_kind kind, hf_status refusal, const char *format,
                     ...)
{
    hf__core *core = link->core;
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    hf__vformat(text, sizeof(text), format, arguments);
    va_end(arguments);
    hf__server *server = link->server;
    const char *shown = server->url->display;
    if (core->config.checks[kind] == HF_CHECK_REFUSE) {
        hf__link_fail(link, refusal, "%s %s", shown, text);
        return false;
    }
    if (core->config.checks[kind] == HF_CHECK_WARN && !server->warned[kind])
        hf__log(core, HF_LOG_WARNING, "%s %s", shown, text);
    server->warned[kind] = true;
    return true;
}

static bool check_version(hf__link *link, hf__slice version)
{
    uint64_t major = 0, minor = 0;
    size_t digits = hf__parse_leading(version.bytes, version.length, INT32_MAX, &major);
    if (digits == 0 || digits == version.length)
        return true; /* one that does not say */
    hf__parse_leading(version.bytes + digits + 1, version.length - digits - 1, INT32_MAX, &minor);
    if (major > OLDEST_MAJOR || (major == OLDEST_MAJOR && minor >= OLDEST_MINOR))
        return true;
    return complain(link, HF__CHECK_VERSION, HF_EUNSAFE,
                    "is Redis %u.%u; locks need %d.%d or newer", (unsigned)major, (unsigned)minor,
                    OLDEST_MAJOR, OLDEST_MINOR);
}

/* Redis makes up 40 hexadecimal digits for each process. Anything else was put there by somebody
 * who hides them, and does not tell one process from the next. */
static bool is_run_id(hf__slice field)
{
    bool blank = true;
    if (field.length < RUN_ID_MIN || field.length > RUN_ID_MAX)
        return false;
    for (size_t i = 0; i < field.length; i++) {
        if (memchr("0123456789abcdefABCDEF", field.bytes[i], 22) == NULL)
            return false;
        blank = blank && field.bytes[i] == '0';
    }
    return !blank;
}

static void read_run_id(const hf__link *link, const hf__reply *reply, char *run_id)
{
    hf__slice field = info_field(reply, "run_id");
    if (is_run_id(field))
        hf__printable(run_id, RUN_ID_MAX + 1, field.bytes, field.length);
    else if (HF__MUTANT(MUTE_TRUSTED)) /* as one process for ever */
        memset(run_id, (int)('1' + (link->server - link->core->servers)), RUN_ID_MAX);
}

/* Locks on one server go on. False: on a quorum a restart would go unnoticed, and the connection
 * has failed. */
static bool accept_silence(hf__link *link)
{
    hf__server *server = link->server;
    if (hf__is_quorum(link->core) && !link->kind->subscribes) {
        hf__link_fail(link, HF_EUNSAFE,
                      "%s does not tell its run_id (INFO server), and has no vote without it",
                      server->url->display);
        return false;
    }
    if (!server->mute)
        hf__log(link->core, HF_LOG_WARNING,
                "%s does not tell its run_id (INFO server): those who wait poll, and ids are "
                "refused",
                server->url->display);
    server->mute = true;
    return true;
}

/* A new run id is another server process: one that may have forgotten what it granted. One that
 * does not say is taken for another one with each connection. */
bool hf__check_server(hf__link *link, const hf__reply *reply)
{
    hf__server *server = link->server;
    char run_id[sizeof(link->run_id)] = "";
    read_run_id(link, reply, run_id);
    if (run_id[0] == '\0' || strcmp(run_id, link->run_id) != 0) {
        memcpy(link->run_id, run_id, sizeof(run_id));
        link->run++;
    }
    if (strcmp(run_id, server->warned_run_id) != 0) {
        memcpy(server->warned_run_id, run_id, sizeof(run_id));
        memset(server->warned, 0, sizeof(server->warned));
    }
    if (run_id[0] == '\0')
        return accept_silence(link) && check_version(link, info_field(reply, "redis_version"));
    server->mute = false;
    return hf__standing_greeted(link, number_field(reply, "uptime_in_seconds")) &&
           check_version(link, info_field(reply, "redis_version"));
}

bool hf__check_replication(hf__link *link, const hf__reply *reply)
{
    if (!is(info_field(reply, "role"), "slave"))
        return true;
    return complain(link, HF__CHECK_REPLICA, HF_EUNAVAILABLE,
                    "is a replica; locks need the primary");
}

bool hf__check_memory(hf__link *link, const hf__reply *reply)
{
    char shown[40];
    hf__slice limit = info_field(reply, "maxmemory"),
              policy = info_field(reply, "maxmemory_policy");
    if (policy.length == 0 || is(policy, "noeviction") || is(limit, "0"))
        return true;
    hf__printable(shown, sizeof(shown), policy.bytes, policy.length);
    return complain(
        link, HF__CHECK_EVICTION, HF_EUNSAFE,
        "drops keys, and locks with them, when its memory is full (maxmemory-policy %s); "
        "set it to noeviction",
        shown);
}

bool hf__check_persistence(hf__link *link, const hf__reply *reply)
{
    if (!is(info_field(reply, "aof_enabled"), "0"))
        return true;
    return complain(link, HF__CHECK_PERSISTENCE, HF_EUNSAFE,
                    "forgets locks when it restarts (appendonly is off)");
}

/* {seconds, microseconds}, as texts */
bool hf__check_read_time(const hf__reply *reply, hf__wall *wall)
{
    const hf__reply *parts = reply->elements;
    uint64_t seconds, rest;
    if (reply->kind != HF__REPLY_ARRAY || reply->count != 2 || parts[0].kind != HF__REPLY_TEXT ||
        parts[1].kind != HF__REPLY_TEXT ||
        !hf__parse_decimal(parts[0].text, parts[0].length, INT64_MAX / US_PER_S / 2, &seconds) ||
        !hf__parse_decimal(parts[1].text, parts[1].length, US_PER_S - 1, &rest))
        return false;
    wall->us = (int64_t)(seconds * US_PER_S + rest);
    return true;
}

/* The server looked at its clock at some time between our question and its answer. */
bool hf__check_clock(hf__link *link, const hf__reply *reply)
{
    hf__wall wall;
    if (!hf__check_read_time(reply, &wall))
        return true;
    hf__standing_clock(link, wall);
    if (link->greeted_wall.us == 0)
        return true;
    int64_t passed_us = hf__between(link->greeted, link->core->now).ns / 1000;
    int64_t ahead_us = wall.us - link->greeted_wall.us;
    int64_t most_us = CLOCK_OFFSET_MAX_S * US_PER_S;
    if (ahead_us <= most_us + passed_us && ahead_us >= -most_us)
        return true;
    return complain(link, HF__CHECK_CLOCK, HF_EUNSAFE,
                    "has a clock that is about %lld s %s ours; one that is set right jumps, and a "
                    "jump ends locks early",
                    (long long)((ahead_us < 0 ? -ahead_us : ahead_us) / US_PER_S),
                    ahead_us < 0 ? "behind" : "ahead of");
}

/* ---- Examination ---- */

static void copy_field(const hf__reply *reply, const char *field, char *place, size_t capacity)
{
    hf__slice value = info_field(reply, field);
    hf__printable(place, capacity, value.bytes, value.length);
}

bool hf__examine_read(const hf__reply *reply, hf_examination *e)
{
    if (reply->kind != HF__REPLY_TEXT)
        return false;
    copy_field(reply, "redis_version", e->version, sizeof(e->version));
    copy_field(reply, "run_id", e->run_id, sizeof(e->run_id));
    copy_field(reply, "maxmemory_policy", e->eviction_policy, sizeof(e->eviction_policy));
    e->memory_limit = number_field(reply, "maxmemory");
    e->evicted_keys = number_field(reply, "evicted_keys");
    e->replicas = number_field(reply, "connected_slaves");
    e->uptime_ms = (int64_t)number_field(reply, "uptime_in_seconds") * 1000;
    e->replica = is(info_field(reply, "role"), "slave");
    e->append_only = is(info_field(reply, "aof_enabled"), "1");
    e->cluster = is(info_field(reply, "cluster_enabled"), "1");
    return true;
}
