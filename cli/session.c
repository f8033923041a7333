/* SPDX-License-Identifier: MIT */
/* Where settings come from: the command line, then the environment, then the configuration file;
 * the first that says something counts. A password is sent only to a URL of the same source, or of
 * one that counts less: the password of a configured server must not go to whatever --url names.
 * Without any URL the command refuses to guess: a fleet in
 * which each machine silently locks for itself runs everything everywhere. */
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "exit.h"
#include "local.h"
#include "say.h"
#include "urls.h"

enum { MAX_LEASE_MS = 60000 }; /* the library's own default, on which all agree */

#define PLACE(field) offsetof(struct session_options, field)

static const struct option options[] = {
    {'u', "url", OPTION_LIST, PLACE(urls), "URL",
     "the server: redis://, rediss:// or unix://; several: a majority of them", 0, 0, 0},
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
    {0, "max-lease", OPTION_TIME, PLACE(max_lease_ms), "TIME",
     "several servers: the longest lease of all who share locks (60)", HF_LEASE_MIN_MS, HF_MS_MAX,
     0},
    {0, "durable", OPTION_FLAG, PLACE(durable), 0,
     "several servers: none ever forgets; a restarted one votes at once", 0, 0, 0},
    {0, "config", OPTION_TEXT, PLACE(config), "FILE", "settings, instead of the usual places", 0, 0,
     0},
    {0, "json", OPTION_FLAG, PLACE(json), 0, "print JSON", 0, 0, 0},
    {'q', "quiet", OPTION_FLAG, PLACE(quiet), 0, "say errors only", 0, 0, 0},
    {'v', "verbose", OPTION_FLAG, PLACE(verbose), 0, "say what is done", 0, 0, 0},
    {0}};

const struct option_table session_table = {options, NULL};

/* ---- From everywhere ---- */

static void take_text(const char **mine, const char *other)
{
    if (*mine == NULL)
        *mine = other;
}

static bool has_password(const struct session_options *place)
{
    return place->password_file != NULL || place->password_env != NULL;
}

static void take_password(struct session_options *mine, const struct session_options *other)
{
    if (!has_password(mine)) {
        mine->password_file = other->password_file;
        mine->password_env = other->password_env;
    }
}

/* The server, with its password. */
static void take_server(struct session_options *mine, const struct session_options *other)
{
    if (mine->urls.count == 0 && !mine->local) {
        take_password(mine, other);
        mine->urls = other->urls;
        mine->local = other->local;
    } else if (has_password(other) && !has_password(mine) && !mine->local &&
               !urls_have_password(&mine->urls)) {
        mine->password_withheld = true;
    }
}

static void take_rest(struct session_options *mine, const struct session_options *other)
{
    take_server(mine, other);
    take_text(&mine->prefix, other->prefix);
    take_text(&mine->side_prefix, other->side_prefix);
    take_text(&mine->tls_ca, other->tls_ca);
    if (mine->tls_certificate == NULL && mine->tls_key == NULL) { /* they are a pair */
        mine->tls_certificate = other->tls_certificate;
        mine->tls_key = other->tls_key;
    }
    take_text(&mine->tls_name, other->tls_name);
    mine->tls_insecure = mine->tls_insecure || other->tls_insecure;
    mine->strict = mine->strict || other->strict;
    mine->durable = mine->durable || other->durable;
    if (mine->max_lease_ms == 0)
        mine->max_lease_ms = other->max_lease_ms;
    if (!mine->quiet && !mine->verbose) {
        mine->quiet = other->quiet;
        mine->verbose = other->verbose;
    }
    if (mine->timeout_ms == 0)
        mine->timeout_ms = other->timeout_ms;
}

static void name_local(struct session_options *place)
{
    if (place->urls.count == 1 && strcmp(place->urls.texts[0], "local:") == 0) {
        place->local = true;
        place->urls.count = 0;
    }
}

static bool any_is_protected(const struct option_list *urls)
{
    for (size_t i = 0; i < urls->count; i++)
        if (urls_are_protected(urls->texts[i]))
            return true;
    return false;
}

/* Who says how to protect connections must not get all of them in the clear. */
static bool protects_nothing(const struct session_options *said,
                             const struct session_options *place)
{
    bool wanted = said->tls_ca != NULL || said->tls_certificate != NULL || said->tls_key != NULL ||
                  said->tls_name != NULL;
    bool clear = place->local || (place->urls.count > 0 && !any_is_protected(&place->urls));
    if (wanted && clear)
        say_error("tls-ca, tls-cert, tls-key and tls-name need a URL that begins with rediss://");
    return wanted && clear;
}

static void read_environment(struct session_options *place)
{
    const char *url = config_environment("HOLDFAST_URL");
    if (url != NULL)
        place->urls = (struct option_list){{url}, 1};
    place->prefix = config_environment("HOLDFAST_PREFIX");
    place->password_file = config_environment("HOLDFAST_PASSWORD_FILE");
    if (config_environment("HOLDFAST_PASSWORD") != NULL)
        place->password_env = "HOLDFAST_PASSWORD";
    name_local(place);
}

#define IN_ONE_PLACE                                                                        \
    "the configured password is not sent, for the URL does not come from there: give both " \
    "in one place, such as --url and --password-file"

static bool lacks_password(const struct session_options *place)
{
    bool lacks = place->password_withheld && urls_lack_password(&place->urls);
    if (lacks)
        say_error("the URL names a user without a password; " IN_ONE_PLACE);
    else if (place->password_withheld)
        say_more(IN_ONE_PLACE);
    return lacks;
}

int session_complete(struct session_options *place)
{
    struct session_options said = *place, file = {0}, environment = {0};
    if (!config_read(&session_table, &file, place->config))
        return EXIT_USAGE;
    read_environment(&environment);
    name_local(place);
    name_local(&file);
    take_rest(place, &environment);
    take_rest(place, &file);
    say_set_level(place->quiet, place->verbose);
    bool refused =
        lacks_password(place) || protects_nothing(&said, place) || protects_nothing(&file, &file);
    return refused ? EXIT_USAGE : 0;
}

/* *url is freed by the caller. */
static int choose_url(const struct session_options *place, struct session *session, char **url)
{
    if (place->local && place->urls.count > 0) {
        say_error("--local and a URL exclude each other");
        return EXIT_USAGE;
    }
    if (!place->local && place->urls.count == 0) {
        say_error("no server: give --url redis://HOST (or HOLDFAST_URL), or --local for locks on "
                  "this machine only");
        return EXIT_USAGE;
    }
    session->local = place->local;
    if (place->local && !local_start(session->url, sizeof(session->url)))
        return EXIT_NO_SERVER;
    if (place->local)
        say_more("this machine only: %s", session->url);
    *url = place->local ? strdup(session->url) : urls_join(&place->urls);
    if (*url == NULL)
        say_error("out of memory");
    return *url != NULL ? 0 : EXIT_OWN;
}

static void log_line(void *arg, hf_log_level level, const char *text)
{
    static const char failure[] = "cannot connect"; /* the call that needs it will say so too */
    (void)arg;
    if (level >= HF_LOG_WARNING && strncmp(text, failure, sizeof(failure) - 1) != 0)
        say_note("%s", text);
    else
        say_more("%s", text);
}

/* What the options say about every client. */
static int open_client(const struct session_options *place, const char *url,
                       hf_client_options *wanted, struct session *session)
{
    hf_tls tls = {.size = sizeof(tls),
                  .ca_file = place->tls_ca,
                  .certificate_file = place->tls_certificate,
                  .key_file = place->tls_key,
                  .server_name = place->tls_name,
                  .insecure_trust_anybody = place->tls_insecure};
    hf_error error;
    wanted->size = sizeof(*wanted);
    wanted->prefix = place->prefix;
    wanted->side_prefix = place->side_prefix;
    wanted->call_timeout_ms = place->timeout_ms;
    wanted->links = 1;
    wanted->tls = urls_are_protected(url) ? &tls : NULL;
    wanted->password_env = place->password_env;
    wanted->password_file = place->password_file;
    session->password_withheld = place->password_withheld;
    urls_hide(url, session->url, sizeof(session->url));
    if (hf_open(url, wanted, &session->client, &error) != HF_OK)
        return session_fail(session, "cannot begin", &error);
    return 0;
}

/* Of one server everybody may want a lease of any length. Of several, one that was restarted has no
 * vote until every lease that it may have forgotten is over; so all who share locks must mean the
 * same longest lease, whatever each of them wants. */
static int choose_longest(const struct session_options *place, int64_t *longest_ms)
{
    int64_t limit_ms = place->max_lease_ms != 0 ? place->max_lease_ms : MAX_LEASE_MS;
    if (urls_count(&place->urls) < 2) {
        *longest_ms = *longest_ms == SESSION_ANY_LEASE ? HF_MS_MAX : *longest_ms;
        return 0;
    }
    if (*longest_ms > limit_ms) {
        say_error("on several servers a lock is kept for at most %g s at a time, unless all who "
                  "share locks say --max-lease",
                  (double)limit_ms / 1000);
        return EXIT_USAGE;
    }
    *longest_ms = limit_ms;
    return 0;
}

int session_open(struct session_options *place, int64_t longest_ms, struct session *session)
{
    char *url = NULL;
    *session = (struct session){0};
    int code = session_complete(place);
    if (code == 0)
        code = choose_longest(place, &longest_ms);
    if (code == 0)
        code = choose_url(place, session, &url);
    if (code != 0)
        return code;
    hf_check check = place->strict ? HF_CHECK_REFUSE : HF_CHECK_WARN;
    hf_client_options wanted = {.max_lease_ms = longest_ms,
                                .durable_servers = place->durable,
                                .log = place->silent ? NULL : log_line,
                                .own_loop = place->own_loop,
                                .check_eviction = check,
                                .check_clock = check,
                                .check_persistence =
                                    place->strict ? HF_CHECK_REFUSE : HF_CHECK_IGNORE};
    code = open_client(place, url, &wanted, session);
    free(url);
    return code;
}

int session_open_unchecked(const struct session_options *place, const char *url,
                           hf_log_function *log, void *arg, struct session *session)
{
    hf_client_options wanted = {.log = log,
                                .log_arg = arg,
                                .check_eviction = HF_CHECK_IGNORE,
                                .check_replica = HF_CHECK_IGNORE,
                                .check_version = HF_CHECK_IGNORE,
                                .check_persistence = HF_CHECK_IGNORE,
                                .check_clock = HF_CHECK_IGNORE};
    *session = (struct session){0};
    return open_client(place, url, &wanted, session);
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
    case HF_ESOLDOUT:
    case HF_ELIMIT:
    case HF_EEXPIRED:
    case HF_ESTALE:
        return EXIT_NO;
    case HF_EMISSING:
        return EXIT_MISSING;
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
    const char *advice = advice_for(error->status);
    if (error->status == HF_EDENIED && session->password_withheld)
        advice = "; " IN_ONE_PLACE;
    say_error("%s: %s%s", what, error->text, advice);
    return exit_code_of(error->status);
}

int session_take_name(int count, char **words, bool token, const char **name)
{
    static const struct argument with_token[] = {
        {"NAME", "the name of the lock"}, {"TOKEN", "what acquire has printed"}, {0}};
    static const struct argument alone[] = {{"NAME", "the name of the lock"}, {0}};
    if (!options_check_words(token ? with_token : alone, 1, count, words, "see --help"))
        return EXIT_USAGE;
    *name = words[0];
    return 0;
}
