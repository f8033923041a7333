/* SPDX-License-Identifier: MIT */
/* Stock from scripts: each action is one call of the library. What is refused for a reason that the
 * script may have expected (sold out, the limit of a user, too late) is exit code 1 and, with
 * --json, an outcome; an item that is not there is a mistake, and has a code of its own. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast_stock.h>

#include "exit.h"
#include "json.h"
#include "say.h"
#include "session.h"
#include "show.h"
#include "verb.h"

struct stock_options {
    struct session_options session;
    int64_t units;
    const char *user;
    const char *request;
    int64_t limit_ms;
    int64_t per_user;
    bool no_limit;
    int64_t keep_ms;
    bool afresh;
    bool restock;
    bool force;
};

#define PLACE(field) offsetof(struct stock_options, field)

static const struct option options[] = {
    {'n', "units", OPTION_NUMBER, PLACE(units), "N", "take, put, reserve: how many; 1", 1,
     HF_UNITS_MAX, 0},
    {0, "user", OPTION_TEXT, PLACE(user), "NAME", "take, put, reserve: for whom, or from whom", 0,
     0, 0},
    {0, "request", OPTION_TEXT, PLACE(request), "ID",
     "take, put, reserve: which order; the same twice counts once", 0, 0, 0},
    {0, "for", OPTION_TIME, PLACE(limit_ms), "TIME", "reserve: how long", 1, HF_MS_MAX, 0},
    {0, "restock", OPTION_FLAG, PLACE(restock), 0, "put: the units are new", 0, 0, 0},
    {0, "per-user", OPTION_NUMBER, PLACE(per_user), "N", "set: how many one user may have", 1,
     HF_UNITS_MAX, 0},
    {0, "no-limit", OPTION_FLAG, PLACE(no_limit), 0, "set: users may have any number", 0, 0, 0},
    {0, "keep", OPTION_TIME, PLACE(keep_ms), "TIME",
     "set: how long orders are remembered; 24h, at least 1m", HF_KEEP_MIN_MS, HF_MS_MAX, 0},
    {0, "afresh", OPTION_FLAG, PLACE(afresh), 0, "set: forget what was sold, and to whom", 0, 0, 0},
    {0, "force", OPTION_FLAG, PLACE(force), 0, "delete: although reservations are open", 0, 0, 0},
    {0}};

struct task {
    const struct stock_options *given;
    struct session session;
    const char *item;
    const char *word; /* behind it: units, or a request; NULL: none */
};

/* ---- What came of it ---- */

static const char *outcome_of(hf_status status)
{
    switch (status) {
    case HF_OK:
        return "done";
    case HF_ESOLDOUT:
        return "sold_out";
    case HF_ELIMIT:
        return "limit";
    case HF_EEXPIRED:
        return "expired";
    case HF_EBUSY:
        return "reserved";
    default:
        return NULL;
    }
}

static void print_json(const struct task *task, hf_status status, const char *request,
                       const int64_t *left)
{
    json_begin_object(NULL);
    json_text("item", task->item);
    json_text("outcome", outcome_of(status));
    if (request != NULL)
        json_text("request", request);
    if (left != NULL)
        json_number("left", *left);
    json_end_object();
    (void)json_finish();
}

/* `request` and `left` are printed if there are any; without --json the first of them, if it is
 * done. */
static int finish(const struct task *task, const char *what, const hf_error *error,
                  const char *request, const int64_t *left)
{
    if (outcome_of(error->status) == NULL)
        return session_fail(&task->session, what, error);
    if (error->status != HF_OK)
        say_note("%s: %s", what, error->text);
    if (task->given->session.json)
        print_json(task, error->status, request, left);
    else if (error->status == HF_OK && request != NULL)
        printf("%s\n", request);
    else if (error->status == HF_OK && left != NULL)
        printf("%" PRId64 "\n", *left);
    return show_finish(exit_code_of(error->status));
}

/* ---- An item ---- */

static bool read_units(const char *word, int64_t *units)
{
    char *end;
    errno = 0;
    *units = strtoll(word, &end, 10);
    if (isdigit((unsigned char)word[0]) && *end == '\0' && errno == 0 && *units <= HF_UNITS_MAX)
        return true;
    say_error("UNITS: \"%s\" is not good: a number, at most %lld, is expected", word,
              (long long)HF_UNITS_MAX);
    return false;
}

static int set(struct task *task)
{
    const struct stock_options *given = task->given;
    hf_error error;
    int64_t units;
    if (!read_units(task->word, &units))
        return EXIT_USAGE;
    hf_stock_options wanted = {.size = sizeof(wanted),
                               .per_user = given->no_limit ? -1 : given->per_user,
                               .keep_ms = given->keep_ms,
                               .afresh = given->afresh};
    (void)hf_stock_set(task->session.client, task->item, units, &wanted, &error);
    return finish(task, "not set", &error, NULL, NULL);
}

static int delete_item(struct task *task)
{
    hf_error error;
    (void)hf_stock_delete(task->session.client, task->item, 0, task->given->force, &error);
    return finish(task, "not deleted", &error, NULL, NULL);
}

struct count {
    const char *name;
    int64_t number;
};

static void print_counts(const struct task *task, const struct count *counts, size_t how_many,
                         const hf_stock_report *audited)
{
    bool json = task->given->session.json;
    if (json) {
        json_begin_object(NULL);
        json_text("item", task->item);
    }
    for (size_t i = 0; i < how_many; i++) {
        if (json)
            json_number(counts[i].name, counts[i].number);
        else
            printf("%-16s %" PRId64 "\n", counts[i].name, counts[i].number);
    }
    if (json && audited != NULL)
        json_bool("adds_up", audited->adds_up);
    else if (audited != NULL)
        printf("%-16s %s\n", "adds_up", audited->adds_up ? "yes" : "no");
    if (json) {
        json_end_object();
        (void)json_finish();
    }
}

static int look(struct task *task, bool audit)
{
    hf_stock_report report = {.adds_up = true};
    hf_error error;
    hf_status status =
        audit ? hf_stock_audit(task->session.client, task->item, 0, &report, &error)
              : hf_stock_get(task->session.client, task->item, 0, &report.state, &error);
    if (status != HF_OK)
        return session_fail(&task->session, "cannot look at the item", &error);
    const hf_stock_state *state = &report.state;
    const struct count counts[] = {{"total", state->total},
                                   {"available", state->available},
                                   {"reserved", state->reserved},
                                   {"sold", state->sold},
                                   {"reservations", state->reservations},
                                   {"per_user", state->per_user},
                                   {"keep_ms", state->keep_ms},
                                   {"in_reservations", report.in_reservations},
                                   {"by_users", report.by_users},
                                   {"by_nobody", report.by_nobody},
                                   {"most_by_one", report.most_by_one}};
    size_t all = sizeof(counts) / sizeof(counts[0]), counted = 4;
    print_counts(task, counts, audit ? all : all - counted, audit ? &report : NULL);
    if (!report.adds_up)
        say_error("the item does not add up: somebody has changed it by hand, or it is damaged");
    return show_finish(report.adds_up ? EXIT_OK : EXIT_NO);
}

static int get(struct task *task)
{
    return look(task, false);
}

static int audit(struct task *task)
{
    return look(task, true);
}

/* ---- Orders ---- */

static hf_take_options wish_of(const struct stock_options *given)
{
    return (hf_take_options){.size = sizeof(hf_take_options),
                             .user = given->user,
                             .request = given->request,
                             .restock = given->restock};
}

static int64_t units_of(const struct stock_options *given)
{
    return given->units != 0 ? given->units : 1;
}

typedef hf_status order_function(hf_client *client, const char *item, int64_t units,
                                 const hf_take_options *options, int64_t *left, hf_error *error);

static int order(struct task *task, order_function *function, const char *what)
{
    hf_take_options wish = wish_of(task->given);
    int64_t left = 0;
    hf_error error;
    (void)function(task->session.client, task->item, units_of(task->given), &wish, &left, &error);
    return finish(task, what, &error, NULL, &left);
}

static int take(struct task *task)
{
    return order(task, hf_stock_take, "not sold");
}

static int put(struct task *task)
{
    return order(task, hf_stock_put, "not taken back");
}

static int reserve(struct task *task)
{
    hf_take_options wish = wish_of(task->given);
    char request[HF_REQUEST_MAX + 1] = "";
    int64_t left = 0;
    hf_error error;
    if (task->given->limit_ms == 0) {
        say_error("say --for how long; see --help");
        return EXIT_USAGE;
    }
    hf_status status = hf_stock_reserve(task->session.client, task->item, units_of(task->given),
                                        task->given->limit_ms, &wish, request, &left, &error);
    if (status == HF_EUNKNOWN)
        say_note("should it have been done, its request is %s", request);
    return finish(task, "not reserved", &error, request, &left);
}

typedef hf_status settle_function(hf_client *client, const char *item, size_t name_length,
                                  const char *request, hf_error *error);

static int settle(struct task *task, settle_function *function, const char *what)
{
    hf_error error;
    (void)function(task->session.client, task->item, 0, task->word, &error);
    return finish(task, what, &error, NULL, NULL);
}

static int confirm(struct task *task)
{
    return settle(task, hf_stock_confirm, "not confirmed");
}

static int cancel(struct task *task)
{
    return settle(task, hf_stock_cancel, "not cancelled");
}

/* ---- Actions ---- */

enum { FOR_SET = 1, FOR_ORDER = 2, FOR_PUT = 4, FOR_RESERVE = 8, FOR_DELETE = 16 };

static const struct argument item[] = {{"ITEM", "the name of the item"}, {0}};
static const struct argument item_units[] = {
    {"ITEM", "the name of the item"}, {"UNITS", "how many there are in all"}, {0}};
static const struct argument item_request[] = {
    {"ITEM", "the name of the item"}, {"REQUEST", "what reserve has printed"}, {0}};

static const struct action {
    const char *name;
    const struct argument *arguments;
    int needed; /* of them */
    int takes;  /* which options */
    int (*run)(struct task *task);
} actions[] = {{"set", item_units, 2, FOR_SET, set},
               {"get", item, 1, 0, get},
               {"take", item, 1, FOR_ORDER, take},
               {"put", item, 1, FOR_ORDER | FOR_PUT, put},
               {"reserve", item, 1, FOR_ORDER | FOR_RESERVE, reserve},
               {"confirm", item_request, 2, 0, confirm},
               {"cancel", item_request, 2, 0, cancel},
               {"audit", item, 1, 0, audit},
               {"delete", item, 1, FOR_DELETE, delete_item}};

static const char action_names[] =
    "one of set, get, take, put, reserve, confirm, cancel, audit and delete";

static bool words_fit(const struct action *action, int count, char **words)
{
    bool orders = (action->takes & FOR_ORDER) != 0;
    return options_check_words(action->arguments, action->needed, count, words,
                               orders ? "say how many with -n" : "see --help");
}

static bool options_fit(const struct stock_options *given, const struct action *action)
{
    const struct {
        const char *name;
        bool used;
        int purpose;
    } some[] = {{"units", given->units != 0, FOR_ORDER},
                {"user", given->user != NULL, FOR_ORDER},
                {"request", given->request != NULL, FOR_ORDER},
                {"restock", given->restock, FOR_PUT},
                {"for", given->limit_ms != 0, FOR_RESERVE},
                {"per-user", given->per_user != 0, FOR_SET},
                {"no-limit", given->no_limit, FOR_SET},
                {"keep", given->keep_ms != 0, FOR_SET},
                {"afresh", given->afresh, FOR_SET},
                {"force", given->force, FOR_DELETE}};
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        if (some[i].used && (some[i].purpose & action->takes) == 0) {
            say_error("stock %s does not take --%s; see --help", action->name, some[i].name);
            return false;
        }
    }
    if (given->no_limit && given->per_user != 0)
        say_error("--per-user and --no-limit exclude each other");
    return !given->no_limit || given->per_user == 0;
}

static const struct action *find(const char *name)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

static int run(void *arg, int count, char **words)
{
    struct stock_options *given = arg;
    const struct action *action = count > 0 ? find(words[0]) : NULL;
    if (count == 0)
        say_error("ACTION is missing: %s is expected; see --help", action_names);
    else if (action == NULL)
        say_error("there is no action \"%s\": %s is expected", options_shown(words[0]),
                  action_names);
    if (action == NULL || !words_fit(action, count - 1, words + 1))
        return EXIT_USAGE;
    struct task task = {.given = given, .item = words[1], .word = count > 2 ? words[2] : NULL};
    if (!options_fit(given, action))
        return EXIT_USAGE;
    int code = session_open(&given->session, 0, &task.session);
    if (code != 0)
        return code;
    code = action->run(&task);
    session_close(&task.session);
    return code;
}

const struct verb verb_stock = {
    .name = "stock",
    .usage = "[options] set|get|take|put|reserve|confirm|cancel|audit|delete ITEM [UNITS|REQUEST]",
    .summary = "sell what there is, and no more",
    .details =
        "set ITEM UNITS says how many there are in all; get prints how many are available,\n"
        "reserved and sold. take sells some and put takes them back; both print how many are "
        "left.\n"
        "reserve sets some aside and prints the request by which they are sold (confirm ITEM\n"
        "REQUEST) or given back (cancel ITEM REQUEST); they come back by themselves when the time\n"
        "is over. audit counts everything and says whether it adds up. delete forgets the item, "
        "and\n"
        "refuses to while something is reserved, unless with --force. For one server.\n"
        "Exit code 1: sold out, more than one user may have, too late, or it does not add up.\n"
        "66: there is no such item, or no such reservation. 75: not deleted, something is "
        "reserved;\n"
        "or not counted, the item changes all the time.\n",
    .table = {options, &session_table},
    .size = sizeof(struct stock_options),
    .run = run,
    .mixed = true};
