/* SPDX-License-Identifier: MIT
 *
 * The terminal of the demo. Live means: a terminal that is large enough for the block and not
 * called dumb. Then the block is erased by moving the cursor up over as many lines as were drawn,
 * which is right only as long as no line wraps; hence the test for the width.
 *
 * The cursor is never hidden and no mode is changed, so there is nothing to restore, however the
 * demo ends.
 */
#include "demo.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_NEEDED 80
#define ROWS_NEEDED    (SCREEN_LINES_MAX + 4)

static bool is_live;
static bool has_colours;
static struct screen_line block[SCREEN_LINES_MAX];
static int block_lines;

static const char *const colour_codes[] = {"", "\033[32m", "\033[31m", "\033[33m"};

void screen_open(void)
{
    struct winsize size;
    const char *terminal = getenv("TERM");
    is_live = isatty(STDOUT_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0 &&
              ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= COLUMNS_NEEDED &&
              size.ws_row >= ROWS_NEEDED;
    has_colours = is_live && getenv("NO_COLOR") == NULL;
    /* A frame leaves in one write, or it would flicker. */
    static char buffer[16384];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

bool screen_is_live(void)
{
    return is_live;
}

static void line_print(enum colour colour, const char *text)
{
    if (has_colours && colour != PLAIN)
        printf("%s%s\033[0m\n", colour_codes[colour], text);
    else
        printf("%s\n", text);
}

static void block_erase(void)
{
    if (block_lines > 0)
        printf("\033[%dA\r\033[J", block_lines);
}

static void block_print(void)
{
    for (int i = 0; i < block_lines; i++)
        line_print(block[i].colour, block[i].text);
}

void screen_say(enum colour colour, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    block_erase();
    line_print(colour, text);
    block_print();
    fflush(stdout);
}

void screen_draw(const struct screen_line *lines, int count)
{
    if (!is_live)
        return;
    block_erase();
    memcpy(block, lines, (size_t)count * sizeof *lines);
    block_lines = count;
    block_print();
    fflush(stdout);
}

void screen_keep(void)
{
    block_lines = 0;
}
