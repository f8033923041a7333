/* SPDX-License-Identifier: MIT */
/* See puppet.h. */
#include "puppet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "witness.h"

struct stage {
    const char *url;
    const hf_client_options *options;
};

struct puppet {
    hf_client *client;
    hf_hold *hold;
    hf_error error;
    int64_t acquired_ms;
    struct witness witness;
};

static hf_status acquire(struct puppet *puppet, const char *order, bool renewed, bool polls)
{
    long long lease_ms = 0;
    long long wait_ms = 0;
    char owner[LINE_MAX_TEXT] = "";
    (void)sscanf(order, "%*s %lld %lld %255s", &lease_ms, &wait_ms, owner);
    hf_status status = hf_acquire(
        puppet->client, "lock",
        HF_ACQUIRE(.lease_ms = lease_ms, .wait_ms = wait_ms, .retry_interval_ms = polls ? 20 : 0,
                   .owner = owner[0] != '\0' ? owner : NULL, .no_renewal = !renewed,
                   .on_event = witness_event, .arg = &puppet->witness),
        &puppet->hold, &puppet->error);
    puppet->acquired_ms = now_ms();
    return status;
}

static void say_told(int line, const struct witness *witness)
{
    char text[LINE_MAX_TEXT] = "";
    size_t length = 0;
    for (size_t i = 0; i < atomic_load(&witness->count) && length + 16 < sizeof(text); i++)
        length +=
            (size_t)snprintf(text + length, sizeof(text) - length, "%s%s:%d", i > 0 ? " " : "",
                             hf_state_name(witness->told[i].state), (int)witness->told[i].reason);
    line_say(line, "%s", length > 0 ? text : "nothing");
}

static void spin(int line, const hf_hold *hold)
{
    int64_t asked = now_ms();
    int64_t last_yes = 0;
    while (hf_is_valid(hold)) {
        last_yes = asked;
        asked = now_ms();
    }
    hf_state state = hf_hold_state(hold);
    line_say(line, "%lld %s", (long long)last_yes, hf_state_name(state));
}

static bool is(const char *order, const char *word)
{
    return strcmp(order, word) == 0;
}

static void obey(int line, struct puppet *puppet, const char *order)
{
    if (strncmp(order, "acquire ", 8) == 0)
        line_say(line, "%s", hf_status_name(acquire(puppet, order, true, true)));
    else if (strncmp(order, "lease ", 6) == 0)
        line_say(line, "%s", hf_status_name(acquire(puppet, order, false, true)));
    else if (strncmp(order, "queue ", 6) == 0)
        line_say(line, "%s", hf_status_name(acquire(puppet, order, true, false)));
    else if (is(order, "extend"))
        line_say(line, "%s", hf_status_name(hf_extend(puppet->hold, 0, &puppet->error)));
    else if (is(order, "release"))
        line_say(line, "%s", hf_status_name(hf_release(&puppet->hold, &puppet->error)));
    else if (is(order, "nowait"))
        line_say(line, "%s", hf_status_name(hf_release_nowait(&puppet->hold)));
    else if (is(order, "state"))
        line_say(line, "%s", hf_state_name(hf_hold_state(puppet->hold)));
    else if (is(order, "valid"))
        line_say(line, "%s", hf_is_valid(puppet->hold) ? "yes" : "no");
    else if (is(order, "fence"))
        line_say(line, "%llu", (unsigned long long)hf_fence(puppet->hold));
    else if (is(order, "when"))
        line_say(line, "%lld", (long long)puppet->acquired_ms);
    else if (is(order, "why"))
        line_say(line, "%s", puppet->error.text);
    else if (is(order, "told"))
        say_told(line, &puppet->witness);
    else if (is(order, "spin"))
        spin(line, puppet->hold);
    else
        line_say(line, "what?");
}

static void run(int line, void *arg)
{
    static struct puppet puppet;
    const struct stage *stage = arg;
    char order[LINE_MAX_TEXT];
    if (hf_open(stage->url, stage->options, &puppet.client, NULL) != HF_OK)
        _exit(1);
    while (line_hear(line, order, 60000))
        obey(line, &puppet, order);
}

struct process *puppet_start(const struct redis_server *server)
{
    return puppet_start_at(server->url, NULL);
}

struct process *puppet_start_at(const char *url, const hf_client_options *options)
{
    struct stage stage = {.url = url, .options = options};
    return process_start(run, &stage); /* the child has a copy */
}

void tell(struct process *puppet, const char *order)
{
    line_say(puppet->line, "%s", order);
}

long long ask_number(struct process *puppet, const char *order)
{
    char heard[LINE_MAX_TEXT] = "(silence)";
    char *end;
    tell(puppet, order);
    (void)line_hear(puppet->line, heard, 20000);
    long long number = strtoll(heard, &end, 10);
    if (end == heard)
        fail_msg("%s: not a number: %s", order, heard);
    return number;
}
