/* SPDX-License-Identifier: MIT */
/* Prints ids that nobody else gets, or what one says. Each call of the command reserves what it
 * prints, so that the ids of a later one are larger anyway; what --ordered adds is that within one
 * call nothing is reserved before it is needed. */
#include <holdfast_ids.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exit.h"
#include "json.h"
#include "say.h"
#include "session.h"
#include "show.h"
#include "text.h"
#include "verb.h"

enum { COUNT_MAX = 1000000000, AT_ONCE = 4096, DECIMAL = 10, HEXADECIMAL = 16 };

struct id_options {
    struct session_options session;
    int64_t count;
    bool hex;
    const char *parse;
    bool ordered;
    const char *key_file;
    int64_t epoch_s;
    int64_t skew_s;
};

#define PLACE(member) offsetof(struct id_options, member)

static const struct option options[] = {
    {'n', "count", OPTION_NUMBER, PLACE(count), "COUNT", "so many of them, one per line (1)", 1,
     COUNT_MAX, 0},
    {0, "hex", OPTION_FLAG, PLACE(hex), 0, "as 16 hexadecimal digits", 0, 0, 0},
    {0, "parse", OPTION_TEXT, PLACE(parse), "ID", "say when it was reserved, asking no server", 0,
     0, 0},
    {0, "ordered", OPTION_FLAG, PLACE(ordered), 0, "reserve none before it is to be printed", 0, 0,
     0},
    {0, "key-file", OPTION_TEXT, PLACE(key_file), "FILE",
     "make them hard to guess, with the secret in there", 0, 0, 0},
    {0, "epoch", OPTION_NUMBER, PLACE(epoch_s), "SECONDS",
     "since 1970, from which their time counts (1767225600)", 1, 0, 0},
    {0, "skew", OPTION_NUMBER, PLACE(skew_s), "SECONDS",
     "by which clocks of servers may differ (2)", 1, HF_IDS_SKEW_MAX, 0},
    {0}};

/* ---- The secret ---- */

struct key {
    char bytes[HF_IDS_KEY_MAX + 2]; /* one more than the longest and its newline */
    size_t length;
};

/* A newline at the end is from the editor. */
static bool read_key(const char *path, struct key *key)
{
    FILE *file = fopen(path, "rbe");
    if (file != NULL) {
        key->length = fread(key->bytes, 1, sizeof(key->bytes), file);
        if (ferror(file) != 0)
            key->length = 0;
        (void)fclose(file);
    }
    if (file == NULL || key->length == 0) {
        say_error("--key-file: cannot read %s: %s", path,
                  file == NULL ? strerror(errno) : "it is empty, or no file");
        return false;
    }
    if (key->bytes[key->length - 1] == '\n')
        key->length--;
    if (key->length >= HF_IDS_KEY_MIN && key->length <= HF_IDS_KEY_MAX)
        return true;
    say_error("--key-file: %s must have %d to %d bytes", path, HF_IDS_KEY_MIN, HF_IDS_KEY_MAX);
    return false;
}

static int open_ids(const struct id_options *given, const struct session *session, const char *name,
                    hf_ids **ids)
{
    struct key key = {.length = 0};
    hf_error error;
    if (given->key_file != NULL && !read_key(given->key_file, &key))
        return EXIT_USAGE;
    hf_status status = hf_ids_open(
        session->client, name,
        HF_IDS(.ordered = given->ordered, .epoch_s = given->epoch_s, .max_skew_s = given->skew_s,
               .key = given->key_file != NULL ? key.bytes : NULL, .key_length = key.length),
        ids, &error);
    explicit_bzero(&key, sizeof(key));
    return status == HF_OK ? EXIT_OK : session_fail(session, "cannot make ids", &error);
}

/* ---- Taking ---- */

static void print_id(const struct id_options *given, int64_t id)
{
    char text[HEXADECIMAL + 1];
    (void)snprintf(text, sizeof(text), "%016" PRIx64, (uint64_t)id);
    if (given->session.json && given->hex)
        json_text(NULL, text);
    else if (given->session.json)
        json_number(NULL, id);
    else if (given->hex)
        (void)puts(text);
    else
        printf("%" PRId64 "\n", id);
}

/* Whoever cannot print them needs no more of them. */
static int take(const struct id_options *given, const struct session *session, hf_ids *ids)
{
    int64_t some[AT_ONCE], left = given->count != 0 ? given->count : 1;
    hf_error error;
    while (left > 0 && ferror(stdout) == 0) {
        size_t count = left < AT_ONCE ? (size_t)left : AT_ONCE;
        if (hf_ids_next_batch(ids, some, count, &error) != HF_OK)
            return session_fail(session, "cannot get ids", &error);
        for (size_t i = 0; i < count; i++)
            print_id(given, some[i]);
        left -= (int64_t)count;
    }
    return EXIT_OK;
}

static int take_all(const struct id_options *given, const struct session *session, hf_ids *ids)
{
    if (given->session.json)
        json_begin_array(NULL);
    int code = take(given, session, ids);
    if (given->session.json && code == EXIT_OK) {
        json_end_array();
        (void)json_finish();
    }
    return show_finish(code);
}

/* ---- Parsing ---- */

/* As it is printed, or with 0x. */
static bool read_id(const struct id_options *given, int64_t *id)
{
    const char *text = given->parse;
    bool marked = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *digits = marked ? text + 2 : text;
    bool hex = marked || given->hex;
    char *end;
    errno = 0;
    *id = strtoll(digits, &end, hex ? HEXADECIMAL : DECIMAL);
    size_t good = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");
    if (good > 0 && digits[good] == '\0' && errno == 0 && *id > 0)
        return true;
    say_error("--parse: \"%s\" is no id", text);
    return false;
}

static void print_parts(const struct id_options *given, int64_t id, const hf_id_parts *parts)
{
    char text[TEXT_TIME_MAX] = "?";
    struct tm when;
    time_t seconds = (time_t)parts->unix_s;
    if (gmtime_r(&seconds, &when) != NULL)
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &when);
    if (!given->session.json) {
        printf("time: %s\nseconds: %" PRId64 "\nsequence: %" PRIu32 "\n", text, parts->unix_s,
               parts->sequence);
        return;
    }
    json_begin_object(NULL);
    json_number("id", id);
    json_text("time", text);
    json_number("seconds", parts->unix_s);
    json_number("sequence", parts->sequence);
    json_number("plain", parts->plain);
    json_end_object();
    (void)json_finish();
}

/* The client is never asked anything, so it may be of any server. */
static int parse(struct id_options *given, const char *name)
{
    struct session session = {0};
    hf_ids *ids = NULL;
    hf_error error;
    hf_id_parts parts;
    int64_t id;
    int code = session_complete(&given->session);
    if (code == 0 && !read_id(given, &id))
        code = EXIT_USAGE;
    if (code != 0)
        return code;
    if (hf_open("unix:///none", HF_CLIENT(.own_loop = true), &session.client, &error) != HF_OK)
        return session_fail(&session, "cannot begin", &error);
    code = open_ids(given, &session, name, &ids);
    if (code == 0 && hf_ids_parse(ids, id, &parts, &error) != HF_OK)
        code = session_fail(&session, "cannot parse it", &error);
    if (code == 0)
        print_parts(given, id, &parts);
    hf_ids_close(ids);
    session_close(&session);
    return code == 0 ? show_finish(EXIT_OK) : code;
}

static int run(void *arg, int count, char **words)
{
    struct id_options *given = arg;
    struct session session;
    hf_ids *ids = NULL;
    static const struct argument arguments[] = {{"NAME", "the name under which ids are unique"},
                                                {0}};
    if (!options_check_words(arguments, given->parse == NULL, count, words, "see --help"))
        return EXIT_USAGE;
    const char *name = count > 0 ? words[0] : "any";
    if (given->parse != NULL)
        return parse(given, name);
    given->session.own_loop = true; /* nothing is to be done meanwhile */
    int code = session_open(&given->session, 0, &session);
    if (code != 0)
        return code;
    code = open_ids(given, &session, name, &ids);
    if (code == 0)
        code = take_all(given, &session, ids);
    hf_ids_close(ids);
    session_close(&session);
    return code;
}

const struct verb verb_id = {
    .name = "id",
    .usage = "[options] NAME",
    .summary = "print numbers that nobody else gets, over all machines",
    .details =
        "Ids are positive and have 63 bits: seconds since the epoch, and a number within the\n"
        "second. All who use a name must have the same --epoch, --skew and --key-file.\n"
        "With --parse no NAME is needed: an id says its time, and its number therein.\n",
    .table = {options, &session_table},
    .size = sizeof(struct id_options),
    .run = run,
    .mixed = true};
