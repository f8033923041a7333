/* SPDX-License-Identifier: MIT
 *
 * The bookkeeping of the demo: turns what the workers report into what the audience sees, and lets
 * the story wait for a report. A worker's view changes only here, by its reports, except that the
 * story marks those that it kills, stops and continues, since they cannot report that themselves.
 *
 * Lines carry the time of the report they come from, not the time at which it was read.
 */
#include "demo.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define FRAME_US    100000  /* of the live display */
#define PLAIN_US    1000000 /* between two lines where there is no live display */
#define BAR_COLUMNS 28

double seconds(int64_t duration_us)
{
    return (double)(duration_us > 0 ? duration_us : 0) / 1e6;
}

void say_at(const struct stage *stage, enum colour colour, int64_t at_us, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    screen_say(colour, "%5.1f s  %s", seconds(at_us - stage->act_start_us), text);
}

/* ---- What the audience sees ------------------------------------------------------------------ */

static void describe_state(const struct stage *stage, const struct worker_view *view,
                           struct screen_line *line, char *text, size_t size)
{
    int64_t now_us = demo_now_us();
    double left_s = seconds(view->hold_end_us - now_us);
    char rest[24] = "lease is over";
    if (left_s > 0)
        snprintf(rest, sizeof rest, "lease %.1f s more", left_s);
    line->colour = PLAIN;
    if (view->state == KILLED) {
        line->colour = RED;
        snprintf(text, size, "KILLED, %s", rest);
    } else if (view->state == STOPPED) {
        line->colour = YELLOW;
        snprintf(text, size, "STOPPED, %s", rest);
    } else if (view->state == INSIDE && stage->url != NULL) {
        line->colour = GREEN;
        snprintf(text, size, "HOLDS the lock, %.1f s left", left_s);
    } else if (view->state == INSIDE) {
        line->colour = YELLOW;
        snprintf(text, size, "inside, no lock");
    } else if (view->state == WAITING) {
        snprintf(text, size, "waits for %.1f s", seconds(now_us - view->since_us));
    } else {
        snprintf(text, size, "-");
    }
}

static long most_increments(const struct stage *stage)
{
    long most = BAR_COLUMNS;
    for (int i = 0; i < DEMO_WORKERS; i++)
        if (stage->workers[i].increments > most)
            most = stage->workers[i].increments;
    return most;
}

long sum_of_increments(const struct stage *stage)
{
    long sum = 0;
    for (int i = 0; i < DEMO_WORKERS; i++)
        sum += stage->workers[i].increments;
    return sum;
}

void draw_live(const struct stage *stage)
{
    static const char hashes[BAR_COLUMNS + 1] = "############################";
    struct screen_line lines[DEMO_WORKERS + 2] = {{PLAIN, ""}};
    long most = most_increments(stage);
    for (int i = 0; i < DEMO_WORKERS; i++) {
        const struct worker_view *view = &stage->workers[i];
        struct screen_line *line = &lines[i + 1];
        char state[40];
        describe_state(stage, view, line, state, sizeof state);
        snprintf(line->text, sizeof line->text, "  worker %d  %-27s %.*s %ld", i + 1, state,
                 (int)(view->increments * BAR_COLUMNS / most), hashes, view->increments);
    }
    struct screen_line *last = &lines[DEMO_WORKERS + 1];
    snprintf(last->text, sizeof last->text, "  updates made %ld, counter file %ld",
             sum_of_increments(stage), counter_read(stage->counter_path));
    screen_draw(lines, DEMO_WORKERS + 2);
}

static void draw_plain(const struct stage *stage)
{
    char text[200];
    int length = 0;
    for (int i = 0; i < DEMO_WORKERS; i++) {
        const struct worker_view *view = &stage->workers[i];
        const char *mark = view->state == INSIDE    ? "*"
                           : view->state == KILLED  ? "x"
                           : view->state == STOPPED ? "z"
                                                    : "";
        length += snprintf(text + length, sizeof text - (size_t)length, " %d%s:%ld", i + 1, mark,
                           view->increments);
    }
    say_at(stage, PLAIN, demo_now_us(), "updates by worker (* inside, x killed, z stopped):%s",
           text);
}

static void draw(struct stage *stage)
{
    int64_t now_us = demo_now_us();
    if (now_us < stage->next_frame_us)
        return;
    stage->next_frame_us = now_us + (screen_is_live() ? FRAME_US : PLAIN_US);
    if (screen_is_live())
        draw_live(stage);
    else
        draw_plain(stage);
}

/* ---- Bookkeeping ----------------------------------------------------------------------------- */

static void note_entered(struct worker_view *view, const struct event *event)
{
    if (view->state == WAITING && event->at_us - view->since_us > view->longest_wait_us)
        view->longest_wait_us = event->at_us - view->since_us;
    view->hold_end_us = event->at_us + event->remaining_ms * 1000;
    view->fence = event->fence;
}

static void note_left(const struct stage *stage, const struct event *event)
{
    if (event->status == HF_OK)
        return;
    say_at(stage, YELLOW, event->at_us, "worker %d: its release said %s", event->worker + 1,
           hf_status_name(event->status));
}

static void take_event(struct stage *stage, const struct event *event)
{
    struct worker_view *view = &stage->workers[event->worker];
    switch (event->kind) {
    case EVENT_WAITS:
        view->state = WAITING;
        break;
    case EVENT_ENTERED:
        note_entered(view, event);
        view->state = INSIDE;
        break;
    case EVENT_WROTE:
        view->increments++;
        break;
    case EVENT_LEFT:
        note_left(stage, event);
        view->state = OUTSIDE;
        break;
    case EVENT_SKIPPED:
        view->skipped = true;
        say_at(stage, YELLOW, event->at_us,
               "worker %d: found that its hold had ended, so it did not write", event->worker + 1);
        break;
    case EVENT_FAILED:
        say_at(stage, RED, event->at_us, "worker %d failed: %s: %s", event->worker + 1,
               hf_status_name(event->status), event->text);
        stage->failed = true;
        break;
    case EVENT_HALTED: /* meanwhile its lease was perhaps renewed */
        view->hold_end_us = event->at_us + event->remaining_ms * 1000;
        return;
    }
    view->since_us = event->at_us;
}

/* Waits for the next event until a moment; false when there is none by then, or no more at all. */
static bool next_event(struct stage *stage, int64_t until_us, struct event *event)
{
    int64_t now_us = demo_now_us();
    int64_t wake_us = stage->next_frame_us < until_us ? stage->next_frame_us : until_us;
    int64_t wait_ms = wake_us > now_us ? (wake_us - now_us + 999) / 1000 : 0;
    struct pollfd events = {.fd = stage->event_fd, .events = POLLIN};
    if (stage->everybody_left || poll(&events, 1, (int)wait_ms) <= 0)
        return false;
    if (read(stage->event_fd, event, sizeof *event) == (ssize_t)sizeof *event)
        return true;
    stage->everybody_left = true;
    return false;
}

bool follow_until(struct stage *stage, int worker, enum event_kind kind, int64_t since_us,
                  int64_t until_us, struct event *event)
{
    while (!demo_interrupted && !stage->failed && !stage->everybody_left &&
           demo_now_us() < until_us) {
        if (next_event(stage, until_us, event)) {
            take_event(stage, event);
            if (event->kind == kind && event->at_us >= since_us &&
                (worker == ANYBODY || event->worker == worker))
                return true;
        }
        draw(stage);
    }
    return false;
}
