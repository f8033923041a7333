/* SPDX-License-Identifier: MIT */
/* Where settings come from: the command line, then the environment, then the configuration file;
 * the first that says something counts. Without any URL the command refuses to guess: a fleet in
 * which each machine silently locks for itself runs everything everywhere. */
#include "session.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit.h"
#include "local.h"
#include "say.h"

enum { LINE_MAX_BYTES = 4096, CONFIG_TEXTS = 16 * 1024 };

#define PLACE(field) offsetof(struct session_options, field)

static const struct option options[] = {
    {'u', "url", OPTION_LIST, PLACE(urls), "URL", "the server: redis://, rediss:// or unix://", 0,
     0, 0},
    {0, "local", OPTION_FLAG, PLACE(local), 0,
     "a private server for this user on this machine only", 0, 0, 0},
    {0, "prefix", OPTION_TEXT, PLACE(prefix), "TEXT", "put before the lock's name", 0, 0, 0},
    {0, "side-prefix", OPTION_TEXT, PLACE(side_prefix), "TEXT", "put before holdfast's own keys", 0,
     0, 0},
    {0, "password-file", OPTION_TEXT, PLACE(password_file), "FILE", "the password is in there", 0,
     0, 0},
    {0, "password-env", OPTION_TEXT, PLACE(password_env), "NAME", "or in that environment variable",
     0, 0, 0},
    {0, "tls-ca", OPTION_TEXT, PLACE(tls_ca), "FILE", "whom to trust instead of the system's store",
     0, 0, 0},
    {0, "tls-cert", OPTION_TEXT, PLACE(tls_certificate), "FILE", "our own certificate", 0, 0, 0},
    {0, "tls-key", OPTION_TEXT, PLACE(tls_key), "FILE", "and its key", 0, 0, 0},
    {0, "tls-name", OPTION_TEXT, PLACE(tls_name), "NAME", "expected in the server's certificate", 0,
     0, 0},
    {0, "tls-insecure", OPTION_FLAG, PLACE(tls_insecure), 0,
     "do not look at the certificate: anybody can be the server", 0, 0, 0},
    {0, "timeout", OPTION_TIME, PLACE(timeout_ms), "TIME", "for one answer of the server (3)", 1,
     HF_MS_MAX, 0},
    {0, "strict", OPTION_FLAG, PLACE(strict), 0, "refuse servers that may forget locks", 0, 0, 0},
    {0, "config", OPTION_TEXT, PLACE(config), "FILE", "settings, instead of the usual places", 0, 0,
     0},
    {0, "json", OPTION_FLAG, PLACE(json), 0, "print JSON", 0, 0, 0},
    {'q', "quiet", OPTION_FLAG, PLACE(quiet), 0, "say errors only", 0, 0, 0},
    {'v', "verbose", OPTION_FLAG, PLACE(verbose), 0, "say what is done", 0, 0, 0},
    {0}};

const struct option_table session_table = {options, NULL};

/* ---- The configuration file ---- */

/* What options point to must last. */
static const char *keep(const char *text)
{
    static char texts[CONFIG_TEXTS];
    static size_t used;
    size_t size = strlen(text) + 1;
    if (used + size > sizeof(texts))
        return NULL;
    memcpy(texts + used, text, size);
    used += size;
    return texts + used - size;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    for (size_t length = strlen(text); length > 0 && isspace((unsigned char)text[length - 1]);)
        text[--length] = '\0';
    return text;
}

/* "name = value", "name" for a flag, or a comment. */
static bool read_line(struct session_options *place, char *line, const char *where)
{
    char *name = trim(line);
    if (*name == '\0' || *name == '#')
        return true;
    char *value = strchr(name, '=');
    if (value != NULL)
        *value++ = '\0';
    const char *kept = keep(value != NULL ? trim(value) : "");
    if (kept == NULL) {
        say_error("%stoo much text in a configuration file", where);
        return false;
    }
    return options_set(&session_table, place, trim(name), kept, where);
}

static int read_config(struct session_options *place, const char *path, bool must_exist)
{
    char line[LINE_MAX_BYTES], where[600];
    FILE *file = fopen(path, "re");
    if (file == NULL && (errno == ENOENT || errno == ENOTDIR) && !must_exist)
        return -1;
    if (file == NULL) {
        say_error("cannot read the configuration %s: %s", path, strerror(errno));
        return EXIT_USAGE;
    }
    bool good = true;
    for (int number = 1; good && fgets(line, sizeof(line), file) != NULL; number++) {
        (void)snprintf(where, sizeof(where), "%s:%d: ", path, number);
        good = read_line(place, line, where);
    }
    (void)fclose(file);
    return good ? 0 : EXIT_USAGE;
}

static int read_usual_config(struct session_options *place)
{
    char path[600];
    const char *folder = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int code = -1;
    if (folder != NULL && folder[0] == '/')
        (void)snprintf(path, sizeof(path), "%s/holdfast/config", folder);
    else
        (void)snprintf(path, sizeof(path), "%s/.config/holdfast/config", home != NULL ? home : "");
    if (home != NULL || folder != NULL)
        code = read_config(place, path, false);
    if (code == -1)
        code = read_config(place, "/etc/holdfast/config", false);
    return code == -1 ? 0 : code;
}

/* ---- All together ---- */

static void take_text(const char **mine, const char *other)
{
    if (*mine == NULL)
        *mine = other;
}

static void take_rest(struct session_options *mine, const struct session_options *other)
{
    if (mine->urls.count == 0 && !mine->local) {
        mine->urls = other->urls;
        mine->local = other->local;
    }
    take_text(&mine->prefix, other->prefix);
    take_text(&mine->side_prefix, other->side_prefix);
    if (mine->password_env == NULL)
        take_text(&mine->password_file, other->password_file);
    if (mine->password_file == NULL)
        take_text(&mine->password_env, other->password_env);
    take_text(&mine->tls_ca, other->tls_ca);
    take_text(&mine->tls_certificate, other->tls_certificate);
    take_text(&mine->tls_key, other->tls_key);
    take_text(&mine->tls_name, other->tls_name);
    mine->tls_insecure = mine->tls_insecure || other->tls_insecure;
    mine->strict = mine->strict || other->strict;
    mine->quiet = mine->quiet || other->quiet;
    if (mine->timeout_ms == 0)
        mine->timeout_ms = other->timeout_ms;
}

int session_complete(struct session_options *place)
{
    struct session_options file = {0}, environment = {0};
    const char *url = getenv("HOLDFAST_URL"), *config = place->config;
    if (config == NULL)
        config = getenv("HOLDFAST_CONFIG");
    int code = config != NULL ? read_config(&file, config, true) : read_usual_config(&file);
    if (code != 0)
        return code;
    if (url != NULL && url[0] != '\0')
        environment.urls = (struct option_list){{url}, 1};
    environment.prefix = getenv("HOLDFAST_PREFIX");
    take_rest(place, &environment);
    take_rest(place, &file);
    if (place->urls.count == 1 && strcmp(place->urls.texts[0], "local:") == 0) {
        place->local = true;
        place->urls.count = 0;
    }
    say_set_level(place->quiet, place->verbose);
    return 0;
}

static int choose_url(const struct session_options *place, struct session *session,
                      const char **url)
{
    if (place->local && place->urls.count > 0) {
        say_error("--local and a URL exclude each other");
        return EXIT_USAGE;
    }
    if (place->urls.count > 1) {
        say_error("several URLs would be a quorum, which this version does not have yet: give one");
        return EXIT_USAGE;
    }
    if (!place->local && place->urls.count == 0) {
        say_error("no server: give --url redis://HOST (or HOLDFAST_URL), or --local for locks on "
                  "this machine only");
        return EXIT_USAGE;
    }
    session->local = place->local;
    *url = place->local ? session->url : place->urls.texts[0];
    if (place->local && !local_start(session->url, sizeof(session->url)))
        return EXIT_NO_SERVER;
    return 0;
}

/* The URL without what stands before the last '@' of its authority. */
static void hide_password(const char *url, char *place, size_t capacity)
{
    const char *start = strstr(url, "://");
    const char *at = start != NULL ? strchr(start, '@') : NULL;
    for (const char *next = at; next != NULL; next = strchr(next + 1, '@'))
        at = next;
    if (at == NULL)
        (void)snprintf(place, capacity, "%s", url);
    else
        (void)snprintf(place, capacity, "%.*s%s", (int)(start + 3 - url), url, at + 1);
}

static void log_line(void *arg, hf_log_level level, const char *text)
{
    (void)arg;
    if (level >= HF_LOG_WARNING)
        say_note("%s", text);
    else
        say_more("%s", text);
}

int session_open(struct session_options *place, int64_t max_lease_ms, struct session *session)
{
    const char *url = NULL;
    hf_error error;
    *session = (struct session){0};
    int code = session_complete(place);
    if (code == 0)
        code = choose_url(place, session, &url);
    if (code != 0)
        return code;
    hf_tls tls = {.size = sizeof(tls),
                  .ca_file = place->tls_ca,
                  .certificate_file = place->tls_certificate,
                  .key_file = place->tls_key,
                  .server_name = place->tls_name,
                  .insecure_trust_anybody = place->tls_insecure};
    bool protected = strncmp(url, "rediss:", 7) == 0;
    hf_check check = place->strict ? HF_CHECK_REFUSE : HF_CHECK_WARN;
    hf_client_options wanted = {.size = sizeof(wanted),
                                .prefix = place->prefix,
                                .side_prefix = place->side_prefix,
                                .call_timeout_ms = place->timeout_ms,
                                .max_lease_ms = max_lease_ms,
                                .links = 1,
                                .log = log_line,
                                .tls = protected ? &tls : NULL,
                                .password_env = place->password_env,
                                .password_file = place->password_file,
                                .check_eviction = check,
                                .check_clock = check,
                                .check_persistence =
                                    place->strict ? HF_CHECK_REFUSE : HF_CHECK_IGNORE};
    if (hf_open(url, &wanted, &session->client, &error) != HF_OK)
        return session_fail(session, "cannot begin", &error);
    if (!place->local)
        hide_password(url, session->url, sizeof(session->url));
    return 0;
}

void session_close(struct session *session)
{
    hf_close(session->client);
    session->client = NULL;
}

int exit_code_of(hf_status status)
{
    switch (status) {
    case HF_OK:
        return EXIT_OK;
    case HF_EBUSY:
        return EXIT_BUSY;
    case HF_ELOST:
        return EXIT_LOST;
    case HF_EUNKNOWN:
    case HF_EUNAVAILABLE:
    case HF_ESERVER:
        return EXIT_NO_SERVER;
    case HF_EINVAL:
        return EXIT_USAGE;
    case HF_EDENIED:
        return EXIT_DENIED;
    case HF_EUNSAFE:
        return EXIT_UNSAFE;
    case HF_ENOTHELD:
        return EXIT_NO;
    default:
        return EXIT_OWN;
    }
}

static const char *advice_for(hf_status status)
{
    switch (status) {
    case HF_EUNAVAILABLE:
    case HF_EUNKNOWN:
        return "; is the server running and reachable?";
    case HF_EDENIED:
        return "; check user, password, certificate and ACL";
    case HF_EUNSAFE:
        return "; see holdfast doctor";
    default:
        return "";
    }
}

int session_fail(const struct session *session, const char *what, const hf_error *error)
{
    (void)session;
    say_error("%s: %s%s", what, error->text, advice_for(error->status));
    return exit_code_of(error->status);
}

int session_take_name(int count, char **words, int most, const char **name)
{
    if (count == 0 || count > most) {
        say_error(count == 0 ? "the name of the lock is missing; see --help"
                             : "there are too many words; see --help");
        return EXIT_USAGE;
    }
    *name = words[0];
    return 0;
}
