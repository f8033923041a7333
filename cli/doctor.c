/* SPDX-License-Identifier: MIT */
/* Looks at servers before locks are trusted to them: each check says what is so and what to do
 * about it. Only what makes locks unsafe is BAD; what one should know is a WARNING. Each server is
 * looked at for a little more than a second, which is how long it takes to see its clock go. */
#include "doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exit.h"
#include "instant.h"
#include "json.h"
#include "local.h"
#include "say.h"
#include "show.h"
#include "urls.h"
#include "verb.h"

enum { CLOCK_MS = 1000 };

static const struct option options[] = {{0}};

/* ---- Findings ---- */

void findings_add(struct findings *findings, finding_result result, const char *name,
                  const char *format, ...)
{
    va_list arguments;
    if (findings->count == FINDINGS_MAX)
        return;
    struct finding *finding = &findings->list[findings->count++];
    finding->name = name;
    finding->result = result;
    va_start(arguments, format);
    (void)vsnprintf(finding->text, sizeof(finding->text), format, arguments);
    va_end(arguments);
    if (result == FINDING_BAD && findings->code == EXIT_OK)
        findings->code = EXIT_UNSAFE;
}

void findings_add_failure(struct findings *findings, const char *name, const hf_error *error)
{
    static const struct {
        hf_status status;
        const char *advice;
    } advice[] = {
        {HF_EDENIED, "give the right user and password, and allow what docs/wire.md lists"},
        {HF_EUNSAFE, "do not use it until it shows a certificate that can be trusted"},
        {HF_EUNAVAILABLE, "start it, or correct the address, or let the network through"},
        {HF_EUNKNOWN, "see why it does not answer in time"},
    };
    const char *what_to_do = "see what it says in its own log";
    for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++)
        if (advice[i].status == error->status)
            what_to_do = advice[i].advice;
    if (findings->code == EXIT_OK)
        findings->code = exit_code_of(error->status);
    size_t length = strlen(error->text);
    length -= length > 0 && error->text[length - 1] == '.'; /* the sentence goes on */
    findings_add(findings, FINDING_BAD, name, "%.*s; %s", (int)length, error->text, what_to_do);
}

/* ---- One server ---- */

static void pause_until(int64_t end_ms)
{
    int64_t left;
    while ((left = end_ms - instant_now_ms()) > 0) {
        struct timespec span = {left / 1000, left % 1000 * 1000000};
        nanosleep(&span, NULL);
    }
}

static void look_again(hf_client *client, const hf_examination *first, int64_t looked_ms,
                       struct findings *findings)
{
    hf_examination last;
    hf_error error;
    pause_until(looked_ms + CLOCK_MS);
    if (hf_examine(client, &last, &error) == HF_OK)
        doctor_judge_clock(first, &last, instant_now_ms() - looked_ms, findings);
    else
        findings_add_failure(findings, "clock", &error);
}

static void examine(hf_client *client, struct doctor_log *log, struct findings *findings)
{
    hf_examination server;
    hf_error error;
    hf_status status = hf_examine(client, &server, &error);
    int64_t looked_ms = instant_now_ms();
    if (status != HF_OK) {
        findings_add_failure(findings, status == HF_EDENIED ? "rights" : "reachable", &error);
        return;
    }
    findings_add(findings, FINDING_OK, "reachable", "it answers within %.2f ms",
                 (double)server.round_trip_us / 1000);
    doctor_judge(&server, findings);
    if (!server.replica)
        doctor_try(client, log, findings);
    look_again(client, &server, looked_ms, findings);
}

/* What the number of servers means for those who use them together. */
static void judge_number(size_t number, struct findings *findings)
{
    size_t needed = number / 2 + 1;
    if (number == 2)
        findings_add(findings, FINDING_WARNING, "quorum",
                     "it is one of two: together they add no availability, for both are needed; "
                     "use three");
    else if (number > HF_SERVERS_MAX)
        findings_add(findings, FINDING_WARNING, "quorum",
                     "it is one of %zu, and at most %d can be used together", number,
                     HF_SERVERS_MAX);
    else if (number > 2)
        findings_add(findings, FINDING_OK, "quorum",
                     "it is one of %zu, of which %zu are needed: %zu may fail%s", number, needed,
                     number - needed, number % 2 == 0 ? ", as with one server less" : "");
}

static void look_at(const struct session_options *given, const char *url, bool typed,
                    struct findings *findings)
{
    struct session session;
    struct doctor_log *log = doctor_log_new();
    int code = EXIT_OWN;
    *findings = (struct findings){.code = EXIT_OK};
    if (log == NULL)
        say_error("out of memory");
    else
        code = session_open_unchecked(given, url, doctor_log_line, log, &session);
    if (code == 0) {
        memcpy(findings->url, session.url, sizeof(findings->url));
        doctor_look_at_address(given, url, typed, findings);
        examine(session.client, log, findings);
        session_close(&session);
    }
    findings->code = code != 0 ? code : findings->code;
    doctor_log_free(log);
}

/* ---- What is said ---- */

static void print_text(const struct findings *findings)
{
    static const char *const words[] = {"OK", "WARNING", "BAD"};
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    const char *refused = getenv("NO_COLOR");
    bool coloured = isatty(STDOUT_FILENO) == 1 && (refused == NULL || refused[0] == '\0');
    printf("%s\n", findings->url);
    for (size_t i = 0; i < findings->count; i++) {
        const struct finding *finding = &findings->list[i];
        printf("  %s%-7s%s  %s: %s\n", coloured ? colours[finding->result] : "",
               words[finding->result], coloured ? "\033[0m" : "", finding->name, finding->text);
    }
}

static void print_json(const struct findings *findings)
{
    static const char *const words[] = {"ok", "warning", "bad"};
    json_begin_object(NULL);
    json_text("url", findings->url);
    json_bool("safe", findings->code == EXIT_OK);
    json_begin_array("checks");
    for (size_t i = 0; i < findings->count; i++) {
        json_begin_object(NULL);
        json_text("name", findings->list[i].name);
        json_text("result", words[findings->list[i].result]);
        json_text("text", findings->list[i].text);
        json_end_object();
    }
    json_end_array();
    json_end_object();
}

/* ---- The verb ---- */

struct patients {
    struct option_list urls;
    bool typed; /* on the command line, where others can see them */
    char local[SESSION_URL_MAX];
};

/* Words are URLs like those behind --url; all of them are looked at. */
static bool add_words(struct option_list *urls, int count, char **words)
{
    for (int i = 0; i < count && urls->count < OPTION_LIST_MAX; i++)
        urls->texts[urls->count++] = words[i];
    bool all = count == 0 || urls->texts[urls->count - 1] == words[count - 1];
    if (!all)
        say_error("at most %d servers at a time", OPTION_LIST_MAX);
    return all;
}

static int choose(struct session_options *given, int count, char **words, struct patients *who)
{
    if (!add_words(&given->urls, count, words))
        return EXIT_USAGE;
    who->typed = given->urls.count > 0;
    int code = session_complete(given);
    who->urls = given->urls;
    if (code != 0)
        return code;
    if (given->local && who->urls.count == 0) {
        who->urls = (struct option_list){{who->local}, 1};
        return local_start(who->local, sizeof(who->local)) ? 0 : EXIT_NO_SERVER;
    }
    if (who->urls.count > 0 && !given->local)
        return 0;
    say_error(given->local ? "--local and a URL exclude each other"
                           : "no server: give its URL, such as redis://HOST, or set HOLDFAST_URL, "
                             "or say --local");
    return EXIT_USAGE;
}

/* The code of the first that is not safe. */
static int look_at_all(const struct session_options *given, const struct patients *who)
{
    static struct findings findings;
    size_t number = urls_count(&who->urls);
    int code = EXIT_OK;
    for (size_t i = 0; i < number; i++) {
        char *url = urls_server(&who->urls, i);
        if (url == NULL) {
            say_error("out of memory");
            return EXIT_OWN;
        }
        look_at(given, url, who->typed, &findings);
        free(url);
        judge_number(number, &findings);
        code = code != EXIT_OK ? code : findings.code;
        if (given->json)
            print_json(&findings);
        else
            print_text(&findings);
    }
    return code;
}

static int run(void *arg, int count, char **words)
{
    struct session_options *given = arg;
    struct patients who = {.typed = false};
    int code = choose(given, count, words, &who);
    if (code != 0)
        return code;
    if (given->json)
        json_begin_array(NULL);
    code = look_at_all(given, &who);
    if (given->json) {
        json_end_array();
        (void)json_finish();
    }
    return show_finish(code);
}

const struct verb verb_doctor = {
    .name = "doctor",
    .usage = "[options] [URL...]",
    .summary = "look whether a server is fit to keep locks, and say what to do about it",
    .details =
        "Takes and releases a lock named holdfast-doctor:... to see what is allowed.\n"
        "Exit code 0: safe, perhaps with warnings. 69: not reachable. 77: denied. 78: not\n"
        "safe. With several servers, the code of the first that is not safe; each is looked\n"
        "at by itself, also those of a quorum.\n",
    .table = {options, &session_table},
    .size = sizeof(struct session_options),
    .run = run,
    .mixed = true};
