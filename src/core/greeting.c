/* SPDX-License-Identifier: MIT */
/* The first words on a new connection, all in one write: who we are, who the server is, and the
 * scripts; or, on the one for messages, the subscription, behind a try of all that must be allowed
 * for it to be of use. Replies come in the order of the questions, and the plan of the greeting
 * remembers which question the next one answers. Whatever goes wrong here fails the connection
 * attempt, and the reason reaches every call that waits for it. */
#include <string.h>

#include "base/text.h"
#include "core/fail.h"
#include "core/state.h"

/* False: the connection has failed over what was learnt. */
typedef bool learn_function(hf__link *link, const hf__reply *reply);
/* False: no reason to ask. */
typedef bool words_function(const hf__link *link, hf__slice *words, size_t *count, char *scratch);

enum { SCRATCH = 64, WORDS_MAX = 3, SCRIPT_STEP = 255 };

static bool auth_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    const hf__url *server = link->core->config.server;
    (void)scratch;
    if (server->password == NULL)
        return false;
    words[(*count)++] = HF__SLICE("AUTH");
    if (server->user != NULL)
        words[(*count)++] = hf__slice_text(server->user);
    words[(*count)++] = hf__slice_text(server->password);
    return true;
}

static bool select_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    int database = link->core->config.server->database;
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

static bool server_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)link;
    (void)scratch;
    words[(*count)++] = HF__SLICE("INFO");
    words[(*count)++] = HF__SLICE("server");
    return true;
}

static bool replication_words(const hf__link *link, hf__slice *words, size_t *count, char *scratch)
{
    (void)link;
    (void)scratch;
    words[(*count)++] = HF__SLICE("INFO");
    words[(*count)++] = HF__SLICE("replication");
    return true;
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

static bool nothing_learnt(hf__link *link, const hf__reply *reply)
{
    (void)link;
    (void)reply;
    return true;
}

/* A new run id is another server process: one that may have forgotten what it granted. */
static bool server_learnt(hf__link *link, const hf__reply *reply)
{
    char run_id[sizeof(link->run_id)] = "";
    hf__slice field = info_field(reply, "run_id");
    hf__printable(run_id, sizeof(run_id), field.bytes, field.length);
    if (strcmp(run_id, link->run_id) != 0) {
        memcpy(link->run_id, run_id, sizeof(run_id));
        link->run++;
    }
    return true;
}

static bool replication_learnt(hf__link *link, const hf__reply *reply)
{
    hf__slice role = info_field(reply, "role");
    if (role.length != 5 || memcmp(role.bytes, "slave", 5) != 0)
        return true;
    hf__link_fail(link, HF_EUNAVAILABLE, "%s is a replica; locks need the primary",
                  link->core->config.server->display);
    return false;
}

enum { ANY_LINK, PUSH_LINK }; /* on which a step is made */

static const struct {
    words_function *words;
    learn_function *learnt;
    hf__reply_kind reply;
    bool on;
} steps[] = {
    {auth_words, nothing_learnt, HF__REPLY_TEXT, ANY_LINK},
    {select_words, nothing_learnt, HF__REPLY_TEXT, ANY_LINK},
    {name_words, nothing_learnt, HF__REPLY_TEXT, ANY_LINK},
    {server_words, server_learnt, HF__REPLY_TEXT, ANY_LINK},
    {replication_words, replication_learnt, HF__REPLY_TEXT, ANY_LINK},
    {publish_words, nothing_learnt, HF__REPLY_INTEGER, PUSH_LINK},
    {numsub_words, nothing_learnt, HF__REPLY_ARRAY, PUSH_LINK},
    {ping_words, nothing_learnt, HF__REPLY_TEXT, PUSH_LINK},
    {subscribe_words, nothing_learnt, HF__REPLY_ARRAY, PUSH_LINK},
};

enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

_Static_assert(STEPS + HF__SCRIPT_COUNT <= HF__GREETING_MAX, "the plan of a greeting is too short");

/* Sends one question, if there is reason to ask it, and notes it in the plan. */
static bool ask(hf__link *link, unsigned char step)
{
    char scratch[SCRATCH];
    hf__slice words[WORDS_MAX];
    size_t count = 0;
    if (steps[step].on == PUSH_LINK && !link->is_push)
        return true;
    if (!steps[step].words(link, words, &count, scratch))
        return true;
    link->greeting[link->greeting_length++] = step;
    return hf__resp_encode(&link->out, words, count);
}

bool hf__greeting_send(hf__link *link)
{
    link->greeting_length = link->greeting_answered = 0;
    for (unsigned char step = 0; step < STEPS; step++)
        if (!ask(link, step))
            return false;
    for (int i = 0; i < HF__SCRIPT_COUNT && !link->is_push; i++) {
        hf__slice words[] = {
            HF__SLICE("SCRIPT"), HF__SLICE("LOAD"), {hf__scripts[i].body, hf__scripts[i].length}};
        link->greeting[link->greeting_length++] = SCRIPT_STEP;
        if (!hf__resp_encode(&link->out, words, 3))
            return false;
    }
    return true;
}

/* Without permission to publish or subscribe there are no messages, which is no reason to fail. */
static void refuse(hf__link *link, unsigned char step, const hf__reply *reply)
{
    hf_error why;
    hf__judge(reply, link->core->config.server->display, &why);
    if (step != SCRIPT_STEP && steps[step].on == PUSH_LINK && !hf__may_pass(why.status))
        hf__push_deny(link->core, why.text);
    else
        hf__link_fail(link, why.status, "%s", why.text);
}

void hf__greeting_reply(hf__link *link, const hf__reply *reply)
{
    unsigned char step = link->greeting[link->greeting_answered++];
    if (reply->kind == HF__REPLY_ERROR) {
        refuse(link, step, reply);
        return;
    }
    if (reply->kind != (step == SCRIPT_STEP ? HF__REPLY_TEXT : steps[step].reply)) {
        hf__link_fail(link, HF_EUNAVAILABLE, "%s does not answer like a Redis server",
                      link->core->config.server->display);
        return;
    }
    if (step != SCRIPT_STEP && !steps[step].learnt(link, reply))
        return;
    if (link->greeting_answered == link->greeting_length)
        hf__link_ready(link);
}
