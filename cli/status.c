/* SPDX-License-Identifier: MIT */
/* Who holds what. One name: everything that is known about it. A pattern, or nothing: a table of
 * the locks that are held, in the order of their names, cut to the width of the terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exit.h"
#include "json.h"
#include "names.h"
#include "say.h"
#include "session.h"
#include "show.h"
#include "table.h"
#include "text.h"
#include "verb.h"

static const struct option options[] = {{0}};

struct view {
    const struct session_options *given;
    struct session session;
    struct show_clock clock;
    struct names seen;
    struct table table;
};

/* ---- One ---- */

static int show_one(struct view *view, const char *name)
{
    static hf_inspection lock;
    hf_error error;
    if (hf_inspect(view->session.client, name, 0, &lock, &error) != HF_OK)
        return session_fail(&view->session, "cannot look at the lock", &error);
    if (lock.held)
        view->clock = show_clock_of(view->session.client);
    int64_t held_ms = show_held_ms(&view->clock, &lock);
    if (view->given->json) {
        show_json(NULL, &lock, held_ms);
        (void)json_finish();
    } else if (lock.held) {
        show_lines(&lock, held_ms);
        if (view->session.local)
            printf("scope: this machine only\n");
    } else {
        printf("free\n");
    }
    return show_finish(lock.held ? EXIT_OK : EXIT_NO);
}

/* ---- Several ---- */

static void add_row(struct view *view, const hf_inspection *lock)
{
    char name[SHOW_NAME_MAX], who[SHOW_HOLDER_MAX], held[TEXT_TIME_MAX] = "?",
                                                    left[TEXT_TIME_MAX] = "no limit";
    char holds[24], waiters[24], fence[24];
    int64_t held_ms = show_held_ms(&view->clock, lock);
    if (held_ms >= 0)
        text_time(held, held_ms);
    if (lock->remaining_ms >= 0)
        text_time(left, lock->remaining_ms);
    (void)snprintf(holds, sizeof(holds), "%" PRIu64, lock->hold_count);
    (void)snprintf(waiters, sizeof(waiters), "%" PRIu64, lock->queue_length);
    (void)snprintf(fence, sizeof(fence), "%" PRIu64, lock->fence);
    table_add(&view->table,
              (const char *const[]){show_name(name, lock->name, lock->name_length), held, left,
                                    holds, waiters, fence, show_who(who, lock)});
}

static bool see(void *arg, const hf_inspection *lock)
{
    struct view *view = arg;
    if (!names_add(&view->seen, lock->name, lock->name_length))
        return !view->seen.out_of_memory;
    if (view->given->json)
        show_json(NULL, lock, show_held_ms(&view->clock, lock));
    else
        add_row(view, lock);
    return !view->table.out_of_memory;
}

/* job[1] may be meant as it stands: it is a name too, which it does not match as a pattern. */
static void see_namesake(struct view *view, const char *pattern)
{
    static hf_inspection lock;
    if (pattern != NULL && hf_inspect(view->session.client, pattern, 0, &lock, NULL) == HF_OK &&
        lock.held)
        (void)see(view, &lock);
}

static int show_many(struct view *view, const char *pattern)
{
    hf_error error;
    view->clock = show_clock_of(view->session.client);
    table_begin(&view->table, (const char *const[]){"NAME", "HELD", "LEFT", "HOLDS", "WAITERS",
                                                    "FENCE", "HOLDER", NULL});
    if (view->given->json)
        json_begin_array(NULL);
    hf_status status = hf_list(view->session.client, pattern, see, view, &error);
    if (status != HF_OK)
        return session_fail(&view->session, "cannot list the locks", &error);
    see_namesake(view, pattern);
    if (view->seen.out_of_memory || view->table.out_of_memory) {
        say_error("out of memory");
        return EXIT_OWN;
    }
    if (view->given->json) {
        json_end_array();
        (void)json_finish();
    } else if (view->seen.count > 0) {
        table_print(&view->table);
    }
    if (view->session.local)
        say_note("these are the locks of this machine only");
    return show_finish(view->seen.count > 0 ? EXIT_OK : EXIT_NO);
}

/* ---- The verb ---- */

static int run(void *arg, int count, char **words)
{
    struct view view = {.given = arg};
    static const struct argument arguments[] = {{"NAME or PATTERN", "which locks"}, {0}};
    if (!options_check_words(arguments, 0, count, words, "quote names with blanks, and patterns"))
        return EXIT_USAGE;
    int code = session_open(arg, 0, &view.session);
    if (code != 0)
        return code;
    if (count == 1 && strpbrk(words[0], "*?[") == NULL)
        code = show_one(&view, words[0]);
    else
        code = show_many(&view, count == 1 ? words[0] : NULL);
    names_free(&view.seen);
    table_free(&view.table);
    session_close(&view.session);
    return code;
}

const struct verb verb_status = {
    .name = "status",
    .usage = "[options] [NAME|PATTERN]",
    .summary = "say who holds a lock and who waits for it, or list all that are held",
    .details = "In PATTERN * stands for any text, ? for one character, [ab] for one of these.\n"
               "How long a lock has been held is told from its fence, so it is about right.\n"
               "Exit code 1: nobody holds it, or there are none.\n",
    .table = {options, &session_table},
    .size = sizeof(struct session_options),
    .run = run,
    .mixed = true};
