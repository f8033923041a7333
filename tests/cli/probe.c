/* SPDX-License-Identifier: MIT */
/* What the command makes of its settings, and what its JSON looks like, for the tests:
 *
 *     probe [options of a session]    completes and opens a session; prints what it has come to
 *     probe hold [options]            takes the lock "x" for 2 s at a time, says so, and keeps it
 *                                     until standard input ends; exits with what came of it
 *     probe bytes                     standard input as a JSON text, in an array that has one of
 *                                     every other kind of value in it
 *     probe many                      more JSON than a buffer holds; exits with 0 if it was written
 */
#include <stdio.h>
#include <string.h>

#include "exit.h"
#include "json.h"
#include "session.h"

static void put(const char *key, const char *text)
{
    if (text != NULL)
        json_text(key, text);
    else
        json_null(key);
}

static void put_settings(const struct session_options *found)
{
    put("prefix", found->prefix);
    put("side_prefix", found->side_prefix);
    put("password_file", found->password_file);
    put("password_env", found->password_env);
    put("tls_ca", found->tls_ca);
    put("tls_cert", found->tls_certificate);
    put("tls_key", found->tls_key);
    put("tls_name", found->tls_name);
    json_bool("tls_insecure", found->tls_insecure);
    json_number("timeout_ms", found->timeout_ms);
    json_bool("strict", found->strict);
    json_number("max_lease_ms", found->max_lease_ms);
    json_bool("durable", found->durable);
    json_bool("quiet", found->quiet);
    json_bool("verbose", found->verbose);
}

static int print_session(int count, char **words)
{
    struct session_options found = {0};
    struct session session;
    if (options_parse(&session_table, &found, count, words) < 0)
        return EXIT_USAGE;
    int code = session_open(&found, 0, &session);
    if (code != EXIT_OK)
        return code;
    json_begin_object(NULL);
    json_text("url", session.url);
    json_bool("local", session.local);
    put_settings(&found);
    json_end_object();
    session_close(&session);
    return json_finish() ? EXIT_OK : EXIT_OWN;
}

/* Each line leaves at once: somebody waits for it. */
static int keep_lock(struct session *session)
{
    hf_hold *hold;
    hf_error error;
    if (hf_acquire(session->client, "x", HF_ACQUIRE(.lease_ms = 2000), &hold, &error) != HF_OK)
        return exit_code_of(error.status);
    puts("held");
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
    puts(hf_is_valid(hold) ? "valid" : "lost");
    (void)hf_release(&hold, &error);
    return exit_code_of(error.status);
}

static int hold_lock(int count, char **words)
{
    struct session_options found = {0};
    struct session session;
    if (options_parse(&session_table, &found, count, words) < 0)
        return EXIT_USAGE;
    int code = session_open(&found, 0, &session);
    if (code == EXIT_OK)
        code = keep_lock(&session);
    session_close(&session);
    return code;
}

static int print_bytes(void)
{
    static char bytes[65536];
    size_t length = fread(bytes, 1, sizeof(bytes), stdin);
    json_begin_array(NULL);
    json_bytes(NULL, bytes, length);
    json_number(NULL, INT64_MIN);
    json_unsigned(NULL, UINT64_MAX);
    json_bool(NULL, true);
    json_null(NULL);
    json_begin_object(NULL);
    json_begin_array("none");
    json_end_array();
    json_begin_object("a \"key\"");
    json_end_object();
    json_text("last", "");
    json_end_object();
    json_end_array();
    return json_finish() ? EXIT_OK : EXIT_OWN;
}

static int print_many(void)
{
    json_begin_array(NULL);
    for (int i = 0; i < 100000; i++)
        json_number(NULL, i);
    json_end_array();
    return json_finish() ? EXIT_OK : EXIT_OWN;
}

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "bytes") == 0)
        return print_bytes();
    if (count == 2 && strcmp(words[1], "many") == 0)
        return print_many();
    if (count > 1 && strcmp(words[1], "hold") == 0)
        return hold_lock(count - 2, words + 2);
    return print_session(count - 1, words + 1);
}
