/* SPDX-License-Identifier: MIT */
/* See stream.h. Commands are made from templates, in which a word that begins with '$' stands for
 * something random:
 *
 *   $s $h $l $z  a key that is mostly of that type     $k  any key
 *   $L           a lock; $Q $F $W $O its queue, fence, notes and holders; $q a queue
 *   $H $! $o     the value of a hold, its tombstone, an owner; $C the channel of its client
 *   $r $j $d     how many fences; the number of a copy; the record of a waiter that is over
 *   $v $m $c     a value, a member, a channel
 *   $i $n $N     a small integer; one that may be none, or too big; one that surely is
 *   $f $b        a score, the bound of a range; both may be nonsense
 *   $t $T $A $P  expiries that are far away: in ms, in s, as an instant; and an instant long past
 *   $1 to $8     SHA-1 of acquire, release, renew, revoke, break, inspect, refresh, observe
 *   $*name       SHA-1 of any other script
 *   $D           where ids stand; $V a value, $G the guard of writes
 *   $I           an item of stock; $R $J $Z its requests, old requests, reservations
 *   $X $Y $K     a server process, a request, a user
 *   $E           a time part that is far ahead of all clocks
 *   $B           a fence that is far ahead of all clocks, so that both servers count on from it
 *   $g $_        a pattern; nothing
 *   $e           a script
 *
 * One command in twenty has a word too many or too few. Queues and holders are written by scripts
 * only: the scores of tombstones and holders are times, which the two servers read a moment apart,
 * so their order is not compared; that of waiters is.
 */
#include "stream.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "lua/scripts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One word a line would hide the tables. */
/* clang-format off */
static const char *const integers[] = {
    "0", "1", "-1", "2", "-2", "3", "5", "-7", "100",
};
static const char *const odd_integers[] = {
    "9223372036854775807", "-9223372036854775808", "9223372036854775808", "9223372036854775", "01",
    "+1", " 1", "1.5", "x", "", "-0", "1e3", "-1", "0", "7",
};
#define WORD(literal) {literal, sizeof(literal) - 1}
static const char *const hopeless_integers[] = {
    "9223372036854775807", "-9223372036854775808", "9223372036854775", "x", "",
};
static const char *const scores[] = {
    "1.5", "-2.25", "inf", "-inf", "+inf", "nan", "abc", "1e3", "0.1", "-0", "0x10", "", " 1", "1 ",
    "3.0000000000000004", "1e-400", "1e400", "17179869184", "12345678901234567890",
};
static const char *const bounds[] = {
    "-inf", "+inf", "(1", "(-1", "0", "2", "(1.5", "1.5", "inf", "(inf", "(", "", "x", "nan", "(2",
    "5", "1 ",
};
static const hf__slice values[] = {
    WORD("value"), WORD(""), WORD("10"), WORD("two words"), WORD("a\r\nb"), WORD("x\0y"),
    WORD("\xff\xfe"), WORD("-5"), WORD("0123456789012345678901234567890123456789012345678"),
    WORD("'quoted'"),
};
/* clang-format on */

static size_t below(sim_stream *stream, size_t limit)
{
    return (size_t)hf__random_below(&stream->random, limit);
}

void stream_key(int key, char name[16])
{
    /* Four keys of each, eight locks with their side keys. */
    static const char kinds[] = "shlzLLQQFFWWOOMMDVGIRJZ";
    int kind = key / 4;
    int number = kind >= 4 && kind < 16 ? key % 8 : key % 4;
    (void)snprintf(name, 16, "%c%d", kinds[kind], number);
}

void stream_channel(int client, char channel[48])
{
    (void)snprintf(channel, 48, "hf:c:%032x", 0xa0 + client);
}

/* ---- Words ---- */

static void add_word(sim_stream *stream, hf__slice word)
{
    if (stream->count == STREAM_WORDS_MAX ||
        stream->text_length + word.length > sizeof(stream->text))
        return;
    char *place = stream->text + stream->text_length;
    if (word.length > 0)
        memcpy(place, word.bytes, word.length);
    stream->text_length += word.length;
    stream->words[stream->count++] = (hf__slice){place, word.length};
}

static void add_text(sim_stream *stream, const char *text)
{
    add_word(stream, hf__slice_text(text));
}

static void add_number(sim_stream *stream, const char *before, int64_t number)
{
    char text[40];
    (void)snprintf(text, sizeof(text), "%s%lld", before, (long long)number);
    add_text(stream, text);
}

static void add_text_of(sim_stream *stream, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_text_of(sim_stream *stream, const char *format, ...)
{
    char text[96];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    add_text(stream, text);
}

static void add_key(sim_stream *stream, char kind)
{
    static const char kinds[] = "shlz";
    bool any = kind == 'k' || below(stream, 12) == 0;
    char name[2] = {any ? kinds[below(stream, 4)] : kind, '\0'};
    if (any && below(stream, 4) == 0)
        add_number(stream, "L", (int64_t)below(stream, 8));
    else
        add_number(stream, name, (int64_t)below(stream, 4));
}

static void add_lock(sim_stream *stream, char kind)
{
    char name[2] = {kind == 'q' ? 'Q' : kind, '\0'};
    if (kind == 'L' || kind == 'q' || stream->count == 1) /* the first key of a command */
        stream->lock = (int)below(stream, 8);
    add_number(stream, name, stream->lock);
}

/* What belongs to an item has its number. */
static void add_store(sim_stream *stream, char kind)
{
    static const char *const processes[] = {"run-a", "run-a", "run-a", "run-b"};
    char name[2] = {kind, '\0'};
    if (strchr("DVGI", kind) != NULL || stream->count == 1)
        stream->item = (int)below(stream, 4);
    if (kind == 'X')
        add_text(stream, processes[below(stream, COUNT(processes))]);
    else if (kind == 'Y')
        add_number(stream, "request", (int64_t)below(stream, 10));
    else if (kind == 'K')
        add_number(stream, "user ", (int64_t)below(stream, 3));
    else if (kind == 'E')
        add_number(stream, "", 1900000000 + (int64_t)below(stream, 6));
    else
        add_number(stream, name, stream->item);
}

static void add_script(sim_stream *stream, hf__slice name)
{
    for (size_t i = 0; i < HF__SCRIPT_COUNT; i++)
        if (sim_equal(name, hf__slice_text(hf__scripts[i].name)))
            add_text(stream, hf__scripts[i].sha1);
}

/* Three clients of ours with two holds each, and a foreigner. */
static void add_hold(sim_stream *stream, char kind)
{
    char text[80];
    int hold = (int)below(stream, 7);
    stream_channel(hold / 2, text);
    const char *client = text + 5; /* "hf:c:" */
    if (kind == 'C')
        add_text(stream, text);
    else if (hold == 6)
        add_text(stream, kind == '!' ? "!foreign" : "foreign");
    else
        add_text_of(stream, "%s%.32s:%d@host", kind == '!' ? "!" : "", client, hold);
}

static void add_waiting(sim_stream *stream, char kind)
{
    static const char *const ranges[] = {"1", "1", "3", "64"};
    if (kind == 'r')
        add_text(stream, ranges[below(stream, COUNT(ranges))]);
    else if (kind == 'j')
        add_number(stream, "", 1 + (int64_t)below(stream, 40));
    else
        add_text(stream, "9 1234567890 300000 1 1234567880 ");
}

static void add_pattern(sim_stream *stream)
{
    static const char *const patterns[] = {
        "*",    "F*", "*1", "[LQ]?", "[^s]*", "[a-z][0-3]", "L[5-2]", "\\L1",
        "h\\*", "?",  "",   "**0",   "[",     "[]",         "L*1*",   "[\\]L]1"};
    add_text(stream, patterns[below(stream, COUNT(patterns))]);
}

static void add_expiry(sim_stream *stream, char kind)
{
    int64_t ms = 200000 + (int64_t)below(stream, 800000);
    if (kind == 'T')
        ms /= 1000;
    if (kind == 'A')
        ms += stream->now_ms;
    if (kind == 'P')
        ms = stream->now_ms - ms;
    add_number(stream, "", ms);
}

static void add_chosen(sim_stream *stream, const char *const *texts, size_t count)
{
    add_text(stream, texts[below(stream, count)]);
}

static void add_member(sim_stream *stream)
{
    if (below(stream, 8) == 0)
        add_word(stream, values[below(stream, COUNT(values))]);
    else
        add_number(stream, "m", (int64_t)below(stream, 8));
}

static void add_score(sim_stream *stream)
{
    if (below(stream, 3) > 0)
        add_number(stream, "", (int64_t)below(stream, 7) - 2);
    else
        add_chosen(stream, scores, COUNT(scores));
}

static void add_random(sim_stream *stream, char kind)
{
    if (strchr("shlzk", kind) != NULL)
        add_key(stream, kind);
    else if (strchr("LQFWOMq", kind) != NULL)
        add_lock(stream, kind);
    else if (strchr("tTAP", kind) != NULL)
        add_expiry(stream, kind);
    else if (strchr("12345678", kind) != NULL)
        add_text(stream, hf__scripts[kind - '1'].sha1);
    else if (strchr("DVGIRJZXYKE", kind) != NULL)
        add_store(stream, kind);
    else if (strchr("H!C", kind) != NULL)
        add_hold(stream, kind);
    else if (strchr("rjd", kind) != NULL)
        add_waiting(stream, kind);
    else if (kind == 'o')
        add_number(stream, "owner", (int64_t)below(stream, 2));
    else if (kind == 'B')
        add_number(stream, "", 5000000000000000 + (int64_t)below(stream, 6));
    else if (kind == 'g')
        add_pattern(stream);
    else if (kind == '_')
        add_text(stream, "");
    else if (kind == 'v')
        add_word(stream, values[below(stream, COUNT(values))]);
    else if (kind == 'm')
        add_member(stream);
    else if (kind == 'c')
        add_number(stream, "c", (int64_t)below(stream, 3));
    else if (kind == 'f')
        add_score(stream);
    else if (kind == 'b')
        add_chosen(stream, bounds, COUNT(bounds));
    else if (kind == 'e')
        add_chosen(stream, stream_scripts, stream_script_count);
    else if (kind == 'N')
        add_chosen(stream, hopeless_integers, COUNT(hopeless_integers));
    else if (kind == 'n' && below(stream, 3) == 0)
        add_chosen(stream, odd_integers, COUNT(odd_integers));
    else
        add_chosen(stream, integers, COUNT(integers));
}

static void fill(sim_stream *stream, const char *template)
{
    stream->count = 0;
    stream->text_length = 0;
    while (*template != '\0') {
        size_t length = strcspn(template, " ");
        if (template[0] == '$' && template[1] == '*')
            add_script(stream, (hf__slice){template + 2, length - 2});
        else if (template[0] == '$')
            add_random(stream, template[1]);
        else
            add_word(stream, (hf__slice){template, length});
        template += length + (template[length] == ' ' ? 1 : 0);
    }
}

/* Names of commands are taken in any case, and a wrong number of words must be refused alike. An
 * EVAL keeps its words: one less would make a key of what is none. */
static void disturb(sim_stream *stream)
{
    size_t dice = below(stream, 60);
    char *name = stream->text;
    if (dice == 0 && stream->count > 1)
        stream->count--;
    else if (dice == 1)
        add_member(stream);
    else if (dice == 2)
        for (size_t i = 0; i < stream->words[0].length; i++)
            name[i] = (char)tolower((unsigned char)name[i]);
}

void stream_next(sim_stream *stream)
{
    size_t dice = below(stream, 6);
    if (dice == 0) {
        fill(stream, stream_store_templates[below(stream, stream_store_template_count)]);
        return;
    }
    if (dice < 3) {
        fill(stream, stream_lock_templates[below(stream, stream_lock_template_count)]);
        /* Flushing the scripts every few commands would leave little to run. */
        if (sim_is(stream->words[0], "SCRIPT") && below(stream, 8) > 0)
            fill(stream, "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $j");
        return;
    }
    fill(stream, stream_templates[below(stream, stream_template_count)]);
    disturb(stream);
    if (below(stream, 3000) == 0)
        fill(stream, "FLUSHALL");
}

void stream_next_script(sim_stream *stream, const char *body)
{
    fill(stream, "EVAL");
    add_text(stream, body);
    add_text(stream, "2");
    add_key(stream, 's');
    add_key(stream, 'z');
    add_member(stream);
    add_random(stream, 'i');
}

void stream_next_short(sim_stream *stream, int key)
{
    char name[16];
    char template[96];
    stream_key(key, name);
    size_t kind = below(stream, stream_short_template_count - 1);
    if (name[0] == 'D') /* an acquire would tell the ids that it finds there */
        kind = 0;
    if (name[0] == 'Q')
        kind = stream_short_template_count - 1;
        /* The table's formats take exactly these two. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(template, sizeof(template), stream_short_templates[kind], name,
                   (int)(5 + below(stream, 26)));
#pragma GCC diagnostic pop
    fill(stream, template);
}
