/* SPDX-License-Identifier: MIT */
/* See say.h. Each message leaves in one write, so that lines of many processes do not mix. */
#include "say.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1024, WIDTH_DEFAULT = 80, HURRIED_MS = 10 };

/* Atomic, because the library's threads speak too. */
static atomic_bool is_quiet, is_verbose, is_hurried, live_shown;

void say_set_level(bool quiet, bool verbose)
{
    is_quiet = quiet;
    is_verbose = verbose;
}

void say_in_a_hurry(void)
{
    is_hurried = true;
}

/* A full pipe, or a terminal that was stopped with Ctrl-S. */
static bool would_wait(void)
{
    struct pollfd place = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&place, 1, HURRIED_MS) == 0;
}

static void put(const char *text, size_t length)
{
    while (length > 0 && !(is_hurried && would_wait())) {
        ssize_t written = write(STDERR_FILENO, text, length);
        if (written <= 0)
            return; /* nobody is left to tell */
        text += written;
        length -= (size_t)written;
    }
}

static void say(const char *format, va_list arguments)
{
    char line[LINE_MAX_BYTES];
    int length = snprintf(line, sizeof(line), "%sholdfast: ", live_shown ? "\r\033[K" : "");
    length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
    if ((size_t)length > sizeof(line) - 2)
        length = sizeof(line) - 2;
    line[length++] = '\n';
    live_shown = false;
    put(line, (size_t)length);
}

void say_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void say_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!is_quiet)
        say(format, arguments);
    va_end(arguments);
}

void say_more(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (is_verbose && !is_quiet)
        say(format, arguments);
    va_end(arguments);
}

bool say_has_terminal(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) == 1 && (kind == NULL || strcmp(kind, "dumb") != 0);
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_DEFAULT;
    return size.ws_col;
}

/* Cut to the width of the terminal: a line that wraps cannot be written over. */
void say_live(const char *text)
{
    char line[LINE_MAX_BYTES];
    if (is_quiet || !say_has_terminal() || (text == NULL && !live_shown))
        return;
    int width = (int)terminal_width() - 1;
    int length = snprintf(line, sizeof(line), "\r\033[K%.*s", width, text != NULL ? text : "");
    live_shown = text != NULL;
    put(line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1);
}
