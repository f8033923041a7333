/* SPDX-License-Identifier: MIT */
/* A token is a secret of a kind: whoever has it can release the lock. On the command line others
 * can see it in ps, so it may also come from standard input or the environment. */
#include "token.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "json.h"
#include "say.h"
#include "show.h"

/* ---- The words ---- */

static bool read_token(char place[HF_TOKEN_MAX])
{
    if (fgets(place, HF_TOKEN_MAX, stdin) == NULL)
        place[0] = '\0';
    place[strcspn(place, "\r\n")] = '\0';
    return place[0] != '\0';
}

static bool copy_token(char place[HF_TOKEN_MAX], const char *text)
{
    size_t length = strlen(text);
    if (length == 0 || length >= HF_TOKEN_MAX)
        return false;
    memcpy(place, text, length + 1);
    return true;
}

static int take_words(int count, char **words, struct token_use *use)
{
    int code = session_take_name(count, words, true, &use->name);
    const char *text = code == 0 && count == 2 ? words[1] : getenv("HOLDFAST_TOKEN");
    if (code != 0)
        return code;
    if (text == NULL) {
        say_error("the token is missing: give what acquire has printed, or - to read it from "
                  "standard input, or set HOLDFAST_TOKEN");
        return EXIT_USAGE;
    }
    if (strcmp(text, "-") == 0 ? read_token(use->token) : copy_token(use->token, text))
        return 0;
    say_error("that is not a token: give what acquire has printed");
    return EXIT_USAGE;
}

/* ---- The lock ---- */

static int fail(const struct token_use *use, const hf_error *error)
{
    char name[SHOW_NAME_MAX], what[SHOW_NAME_MAX + 80];
    show_name(name, use->name, 0);
    if (error->status != HF_ELOST) {
        (void)snprintf(what, sizeof(what), "cannot reach the lock \"%s\"", name);
        return session_fail(&use->session, error->status == HF_EINVAL ? name : what, error);
    }
    say_error("the lock \"%s\" is lost: %s; acquire it again", name, error->text);
    return EXIT_LOST;
}

int token_open(struct session_options *options, int count, char **words, int64_t lease_ms,
               struct token_use *use)
{
    hf_error error;
    *use = (struct token_use){.name = NULL};
    int code = take_words(count, words, use);
    if (code == 0)
        code = session_open(options, SESSION_ANY_LEASE, &use->session);
    if (code != 0)
        return code;
    if (hf_attach(use->session.client, use->name, use->token,
                  HF_ACQUIRE(.lease_ms = lease_ms, .no_renewal = true), &use->hold,
                  &error) != HF_OK) {
        code = fail(use, &error);
        token_close(use);
    }
    return code;
}

void token_close(struct token_use *use)
{
    session_close(&use->session);
}

/* ---- What is known of it ---- */

/* The hold has just been confirmed, so there is nothing else that it could be told. */
static bool is_asked_for(struct token_use *use)
{
    struct pollfd news = {.fd = hf_descriptor(use->hold), .events = POLLIN};
    return news.fd >= 0 && poll(&news, 1, 0) == 1 && hf_is_valid(use->hold);
}

int token_read(struct token_use *use, struct token_facts *facts)
{
    hf_error error;
    *facts =
        (struct token_facts){hf_remaining_ms(use->hold), hf_fence(use->hold), is_asked_for(use)};
    return hf_detach(&use->hold, use->token, &error) == HF_OK ? 0 : fail(use, &error);
}

void token_print_json(const struct token_use *use, const struct token_facts *facts, bool renewed)
{
    json_begin_object(NULL);
    json_text("name", use->name);
    json_number("remaining_ms", facts->remaining_ms);
    json_unsigned("fence", facts->fence);
    json_bool("revoked", facts->asked_for);
    if (renewed)
        json_text("token", use->token);
    json_end_object();
    (void)json_finish();
}

int token_finish(const struct token_facts *facts, const char *what)
{
    if (facts->asked_for)
        say_note("%s, but somebody asks for the lock: finish soon and release it", what);
    return show_finish(facts->asked_for ? EXIT_REVOKED : EXIT_OK);
}
