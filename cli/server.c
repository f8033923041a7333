/* SPDX-License-Identifier: MIT */
/* holdfast server: the private server of --local, to be looked at and to be stopped. It starts by
 * itself when it is needed; nothing but `stop` or the end of the machine ends it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exit.h"
#include "help.h"
#include "json.h"
#include "local.h"
#include "say.h"
#include "session.h"
#include "verb.h"

#define PLACE(field) offsetof(struct session_options, field)

static const struct option options[] = {
    {0, "timeout", OPTION_TIME, PLACE(timeout_ms), "TIME", "for one answer of the server (3)", 1,
     HF_MS_MAX, 0},
    {0, "json", OPTION_FLAG, PLACE(json), 0, "print JSON", 0, 0, 0},
    {'q', "quiet", OPTION_FLAG, PLACE(quiet), 0, "say errors only", 0, 0, 0},
    {'v', "verbose", OPTION_FLAG, PLACE(verbose), 0, "say what is done", 0, 0, 0},
    {0}};

/* ---- Status ---- */

static int examine(const struct session_options *wanted, const struct local_status *place,
                   hf_examination *found)
{
    char url[sizeof(place->socket) + 8];
    hf_client *client;
    hf_error error;
    (void)snprintf(url, sizeof(url), "unix://%s", place->socket);
    hf_status status =
        hf_open(url, HF_CLIENT(.links = 1, .call_timeout_ms = wanted->timeout_ms), &client, &error);
    if (status == HF_OK)
        status = hf_examine(client, found, &error);
    if (status != HF_OK)
        say_error("the private server, pid %d, does not answer: %s", (int)place->pid, error.text);
    (void)hf_close(client);
    return exit_code_of(status);
}

static void print_json(const struct local_status *place, const hf_examination *found)
{
    json_begin_object(NULL);
    json_bool("running", place->running);
    json_text("scope", "this machine only");
    json_text("folder", place->folder);
    json_text("socket", place->socket);
    if (place->running) {
        json_number("pid", place->pid);
        json_text("version", found->version);
        json_number("uptime_ms", found->uptime_ms);
        json_bool("append_only", found->append_only);
    }
    json_end_object();
}

static void print_text(const struct local_status *place, const hf_examination *found)
{
    printf("The private server is%s running (this machine only).\n", place->running ? "" : " not");
    printf("  folder   %s\n  socket   %s\n", place->folder, place->socket);
    if (place->running)
        printf("  pid      %d\n  version  %s\n  uptime   %" PRId64 " s\n", (int)place->pid,
               found->version, found->uptime_ms / 1000);
}

static int show(const struct session_options *wanted, const struct local_status *place)
{
    hf_examination found = {0};
    int code = place->running ? examine(wanted, place, &found) : EXIT_NO;
    if (code != EXIT_OK && code != EXIT_NO)
        return code;
    if (wanted->json)
        print_json(place, &found);
    else
        print_text(place, &found);
    if (wanted->json ? !json_finish() : fflush(stdout) != 0)
        return EXIT_OWN;
    return code;
}

static int status(const struct session_options *wanted)
{
    struct local_status place;
    return local_look(&place) ? show(wanted, &place) : EXIT_NO_SERVER;
}

/* ---- Start and stop ---- */

static int start(const struct session_options *wanted)
{
    char url[LOCAL_SOCKET_MAX + 8];
    if (!local_start(url, sizeof(url)))
        return EXIT_NO_SERVER;
    say_more("the private server runs at %s: this machine only", url);
    return wanted->json ? status(wanted) : EXIT_OK;
}

static int stop(const struct session_options *wanted)
{
    if (!local_stop())
        return EXIT_NO_SERVER;
    if (!wanted->json)
        return EXIT_OK;
    int code = status(wanted);
    return code == EXIT_NO ? EXIT_OK : code;
}

static const struct {
    const char *name;
    int (*run)(const struct session_options *wanted);
} actions[] = {{"status", status}, {"start", start}, {"stop", stop}};

/* The first word and those behind `used` options that follow it. */
static bool check_words(int count, char **words, int used)
{
    static const struct argument action[] = {{"ACTION", "one of status, start and stop"}, {0}};
    static const struct argument nothing[] = {{0}};
    if (count == 0)
        return options_check_words(action, 1, count, words, "see --help");
    return options_check_words(nothing, 0, count - used - 1, words + used + 1, "see --help");
}

/* Options may stand behind the action too: it is a verb of its own in all but the table. */
static int run(void *arg, int count, char **words)
{
    struct session_options *wanted = arg;
    if (count > 1 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0))
        return help_for(&verb_server);
    int used = count > 0 ? options_parse(&verb_server.table, wanted, count - 1, words + 1) : 0;
    if (used < 0)
        return EXIT_USAGE;
    say_set_level(wanted->quiet, wanted->verbose);
    if (!check_words(count, words, used))
        return EXIT_USAGE;
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(words[0], actions[i].name) == 0)
            return actions[i].run(wanted);
    say_error("there is no action \"%s\": one of status, start and stop is expected",
              options_shown(words[0]));
    return EXIT_USAGE;
}

const struct verb verb_server = {
    .name = "server",
    .usage = "[options] status|start|stop",
    .summary = "look at the private server of --local, start it, stop it",
    .details =
        "The private server is a redis-server for this user on this machine only. --local starts\n"
        "it when it is needed, and it stays until it is stopped. It listens on a socket in a\n"
        "folder that nobody else can enter: $XDG_RUNTIME_DIR/holdfast if you have set that to\n"
        "another folder than the login's own below /run/user, which is gone after the logout;\n"
        "else /run/holdfast for root and /tmp/holdfast-UID for others. Locks are written down\n"
        "there, and are still held after the server was stopped or killed and started again.\n"
        "status exits with 0 if it runs and with 1 if it does not.\n",
    .table = {options, NULL},
    .size = sizeof(struct session_options),
    .run = run};
