/* SPDX-License-Identifier: MIT */
/* The first words on a new connection, all in one write: who we are, who the server is, and the
 * scripts; or, on the one for messages, the subscription, behind a try of all that must be allowed
 * for it to be of use. Replies come in the order of the questions, and the plan of the greeting
 * remembers which question the next one answers. Whatever goes wrong here fails the connection
 * attempt, and the reason reaches every call that waits for it. */
#include <string.h>

#include "base/text.h"
#include "core/checks.h"
#include "core/fail.h"

/* False: the connection has failed over what was learnt. */
typedef bool learn_function(hf__link *link, const hf__reply *reply);
/* False: no reason to ask. */
typedef bool words_function(const hf__link *link, hf__slice *words, size_t *count, char *scratch);

enum { SCRATCH = HF_SIDE_PREFIX_MAX + 64, WORDS_MAX = 3 };

static bool select_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    int database = link->server->url->database;
    if (database == 0)
        return false;
    words[(*count)++] = HF__SLICE("SELECT");
    words[(*count)++] = (hf__slice){scratch, hf__digits(scratch, (uint64_t)database)};
    return true;
}

static bool name_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    hf__format(scratch, SCRATCH, "holdfast:%s", link->core->config.client_id);
    words[(*count)++] = HF__SLICE("CLIENT");
    words[(*count)++] = HF__SLICE("SETNAME");
    words[(*count)++] = hf__slice_text(scratch);
    return true;
}

static void info_words(hf__slice section, hf__slice *words, size_t *count)
{
    words[(*count)++] = HF__SLICE("INFO");
    words[(*count)++] = section;
}

static bool server_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)link;
    (void)scratch;
    info_words(HF__SLICE("server"), words, count);
    return true;
}

static bool looks_at(const hf__link *link, hf__check_kind kind)
{
    return link->core->config.checks[kind] > HF_CHECK_IGNORE;
}

static bool replication_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)scratch;
    info_words(HF__SLICE("replication"), words, count);
    return looks_at(link, HF__CHECK_REPLICA);
}

static bool memory_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)scratch;
    info_words(HF__SLICE("memory"), words, count);
    return looks_at(link, HF__CHECK_EVICTION);
}

static bool persistence_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)scratch;
    info_words(HF__SLICE("persistence"), words, count);
    return looks_at(link, HF__CHECK_PERSISTENCE);
}

static bool clock_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)scratch;
    words[(*count)++] = HF__SLICE("TIME");
    return looks_at(link, HF__CHECK_CLOCK) || hf__is_quorum(link->core);
}

static bool standing_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    words[(*count)++] = HF__SLICE("MGET");
    words[(*count)++] = hf__standing_key(link->core, scratch);
    return hf__is_quorum(link->core);
}

/* ---- The channel ---- */

static hf__slice channel_word(const hf__link *link, char *scratch)
{
    hf__format(scratch, SCRATCH, "hf:c:%s", link->core->config.client_id);
    return hf__slice_text(scratch);
}

static bool publish_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    words[(*count)++] = HF__SLICE("PUBLISH");
    words[(*count)++] = channel_word(link, scratch);
    words[(*count)++] = HF__SLICE("");
    return true;
}

static bool numsub_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    words[(*count)++] = HF__SLICE("PUBSUB");
    words[(*count)++] = HF__SLICE("NUMSUB");
    words[(*count)++] = channel_word(link, scratch);
    return true;
}

static bool ping_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)link;
    (void)scratch;
    words[(*count)++] = HF__SLICE("PING");
    return true;
}

static bool subscribe_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    words[(*count)++] = HF__SLICE("SUBSCRIBE");
    words[(*count)++] = channel_word(link, scratch);
    return true;
}

/* ---- What is learnt ---- */

static bool nothing_learnt(hf__link *link, const hf__reply *reply)
{
    (void)link;
    (void)reply;
    return true;
}

static void fail_unlike(hf__link *link)
{
    hf__link_fail(link, HF_EUNAVAILABLE, "%s does not answer like a Redis server",
                  link->server->url->display);
}

/* A confirmation of something else is none. */
static bool subscription_learnt(hf__link *link, const hf__reply *reply)
{
    char scratch[SCRATCH];
    hf__slice channel = channel_word(link, scratch);
    const hf__reply *named = &reply->elements[1];
    if (reply->count == 3 && named->kind == HF__REPLY_TEXT && named->length == channel.length &&
        memcmp(named->text, channel.bytes, channel.length) == 0)
        return true;
    fail_unlike(link);
    return false;
}

static bool standing_learnt(hf__link *link, const hf__reply *reply)
{
    const hf__reply *kept = &reply->elements[0];
    if (reply->count == 1 && kept->kind == HF__REPLY_TEXT)
        hf__standing_told(link, (hf__slice){kept->text, kept->length});
    return true;
}

static bool permissions_learnt(hf__link *link, const hf__reply *reply)
{
    hf_error why;
    if (!hf__permit_read(reply, link->server->url->display, "the commands", &why))
        return true;
    hf__link_fail(link, why.status, "%s", why.text);
    return false;
}

enum { ANY_LINK, COMMAND_LINK, PUSH_LINK }; /* on which a step is made */

static const struct {
    words_function *words;
    learn_function *learnt;
    hf__reply_kind reply;
    int on;
    const char *what; /* it is about, where the server's refusal does not say */
} steps[] = {
    {select_words, nothing_learnt, HF__REPLY_TEXT, ANY_LINK, ""},
    {name_words, nothing_learnt, HF__REPLY_TEXT, ANY_LINK, ""},
    {server_words, hf__check_server, HF__REPLY_TEXT, ANY_LINK, ""},
    {replication_words, hf__check_replication, HF__REPLY_TEXT, ANY_LINK, ""},
    {memory_words, hf__check_memory, HF__REPLY_TEXT, COMMAND_LINK, ""},
    {persistence_words, hf__check_persistence, HF__REPLY_TEXT, COMMAND_LINK, ""},
    {clock_words, hf__check_clock, HF__REPLY_ARRAY, COMMAND_LINK, ""},
    {standing_words, standing_learnt, HF__REPLY_ARRAY, COMMAND_LINK, ""},
    {publish_words, nothing_learnt, HF__REPLY_INTEGER, PUSH_LINK, "PUBLISH on hf:c:*: "},
    {numsub_words, nothing_learnt, HF__REPLY_ARRAY, PUSH_LINK, "PUBSUB NUMSUB: "},
    {ping_words, nothing_learnt, HF__REPLY_TEXT, PUSH_LINK, "PING: "},
    {subscribe_words, subscription_learnt, HF__REPLY_ARRAY, PUSH_LINK, "SUBSCRIBE to hf:c:*: "},
};

/* Steps that are not in the table. */
enum { STEPS = sizeof(steps) / sizeof(steps[0]), PERMISSIONS_STEP = 253, AUTH_STEP, SCRIPT_STEP };

_Static_assert(2 + STEPS + HF__SCRIPT_LOADED <= HF__GREETING_MAX,
               "the plan of a greeting is too short");

/* Sends one question, if there is reason to ask it, and notes it in the plan. */
static bool ask(hf__link *link, unsigned char step)
{
    char scratch[SCRATCH];
    hf__slice words[WORDS_MAX];
    size_t count = 0;
    if (steps[step].on == (link->kind->subscribes ? COMMAND_LINK : PUSH_LINK))
        return true;
    if (!steps[step].words(link, words, &count, scratch))
        return true;
    link->greeting[link->greeting_length++] = step;
    return hf__resp_encode(&link->out, words, count);
}

/* What is sent is wiped once it has left: it begins with the password. */
static bool authenticate(hf__link *link, const hf_credentials *credentials)
{
    hf__slice words[] = {HF__SLICE("AUTH"), hf__slice_text(credentials->user),
                         hf__slice_text(credentials->password)};
    bool has_user = words[1].length > 0;
    if (!has_user)
        words[1] = words[2];
    hf__buffer_keep_secret(&link->out);
    link->greeting[link->greeting_length++] = AUTH_STEP;
    return hf__resp_encode(&link->out, words, has_user ? 3 : 2);
}

static const hf__request *first_about_a_lock(const hf__link *link)
{
    hf__node *renewal = hf__list_first(&link->urgent);
    if (renewal != NULL)
        return HF__ENTRY(renewal, hf__request, node);
    for (hf__node *n = hf__list_first(&link->waiting); n != NULL;
         n = hf__list_next(&link->waiting, n))
        if (HF__ENTRY(n, hf__request, node)->kind != HF__REQUEST_SERVER)
            return HF__ENTRY(n, hf__request, node);
    const hf_hold *gated = hf__standing_first_gated(link->server);
    return gated != NULL ? &gated->requests[HF__REQUEST_ACQUIRE] : NULL;
}

/* Whoever waits for the link has a lock to ask about, or a prefix of locks; and none may wait. */
static bool ask_permissions(hf__link *link)
{
    const hf__request *first = first_about_a_lock(link);
    if (link->kind->subscribes || first == NULL)
        return true;
    link->greeting[link->greeting_length++] = PERMISSIONS_STEP;
    return hf__permit_ask_commands(first, &link->out);
}

static bool load_scripts(hf__link *link)
{
    for (int i = 0; i < HF__SCRIPT_LOADED && !link->kind->subscribes; i++) {
        hf__slice words[] = {
            HF__SLICE("SCRIPT"), HF__SLICE("LOAD"), {hf__scripts[i].body, hf__scripts[i].length}};
        link->greeting[link->greeting_length++] = SCRIPT_STEP;
        if (!hf__resp_encode(&link->out, words, 3))
            return false;
    }
    return true;
}

bool hf__greeting_send(hf__link *link, const hf_credentials *credentials)
{
    link->greeting_length = link->greeting_answered = 0;
    if (credentials != NULL && !authenticate(link, credentials))
        return false;
    for (unsigned char step = 0; step < STEPS; step++)
        if (!ask(link, step))
            return false;
    return ask_permissions(link) && load_scripts(link);
}

/* Without permission to publish or subscribe there are no messages, which is no reason to fail. */
static void refuse(hf__link *link, unsigned char step, const hf__reply *reply)
{
    hf_error why;
    hf__judge(reply, link->server->url->display, &why);
    if (step < STEPS && steps[step].on == PUSH_LINK && !hf__may_pass(why.status))
        hf__deaf_begin(link->server, steps[step].what, why.text);
    else
        hf__link_fail(link, why.status, "%s", why.text);
}

static hf__reply_kind expected_reply(unsigned char step)
{
    if (step == PERMISSIONS_STEP)
        return HF__REPLY_ARRAY;
    return step < STEPS ? steps[step].reply : HF__REPLY_TEXT;
}

static bool learn(hf__link *link, unsigned char step, const hf__reply *reply)
{
    if (step == PERMISSIONS_STEP)
        return permissions_learnt(link, reply);
    return step >= STEPS || steps[step].learnt(link, reply);
}

void hf__greeting_reply(hf__link *link, const hf__reply *reply)
{
    unsigned char step = link->greeting[link->greeting_answered++];
    if (hf__reply_refuses(reply)) {
        refuse(link, step, reply);
        return;
    }
    if (reply->kind != expected_reply(step)) {
        fail_unlike(link);
        return;
    }
    if (!learn(link, step, reply))
        return;
    if (link->greeting_answered == link->greeting_length)
        hf__link_ready(link);
}
