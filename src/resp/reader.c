/* SPDX-License-Identifier: MIT */
/* The parser of replies (RESP 2), in two steps. The first one, scan(), finds the end of a reply. It
 * goes on where it stopped, however the stream was cut, checks the framing, and counts: bytes,
 * elements, depth. The second one, build(), makes the objects, when all bytes of the reply are
 * there. Texts stay where they are in the buffer, with a NUL in place of the '\r' behind them;
 * elements of arrays are taken from a pool, of which scan() knows how large it must be.
 *
 * A reply that is larger than the limits is not stored: from then on scan() drops what it has
 * passed. So a peer can make us use about HF__REPLY_BYTES_MAX and the pool, no more, and what is
 * too large costs its request and not the connection. Only broken framing ends a reader, and
 * arrays that are nested too deep.
 *
 * A reader that has once been broken or out of memory stays so; its link is closed and gets a new
 * one. */
#include "resp/reader.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"

enum {
    POOL_KEPT = 256,                       /* elements, between replies */
    POOL_MAX = 2 * HF__REPLY_ELEMENTS_MAX, /* of one reply */
    NUMBER_MAX = 24,                       /* bytes of a line with a number */
    HEADER_BYTES = 3                       /* of the shortest one */
};

typedef enum place { AT_HEADER, IN_LINE, IN_BULK, BEHIND_BULK } place;
typedef enum scanned { SCAN_DONE, SCAN_MORE, SCAN_BROKEN } scanned;

struct hf__reader {
    hf__buffer in; /* the reply that is being read, and what follows it */
    size_t passed; /* bytes of it that scan() has seen, and that are still in the buffer */
    size_t size;   /* of the reply so far, with what is to come of a bulk string */
    place place;   /* in the reply, where scan() goes on */
    uint64_t bulk; /* bytes of a bulk string that are still to come */
    int depth;     /* arrays that are not complete, */
    uint64_t left[HF__REPLY_DEPTH_MAX]; /* with so many elements still to come */
    uint64_t elements;                  /* of all arrays of the reply */
    bool too_large;
    bool given; /* the reply: it goes with the next call */
    hf__reply root;
    hf__reply *pool;
    size_t pool_size, pool_used;
    bool no_memory;
    char refusal[60]; /* why it is broken; empty: it is not */
};

hf__reader *hf__reader_new(void)
{
    hf__reader *reader = hf__alloc(sizeof(*reader));
    if (reader == NULL)
        return NULL;
    reader->pool = hf__alloc(POOL_KEPT * sizeof(hf__reply));
    reader->pool_size = POOL_KEPT;
    if (reader->pool == NULL || !hf__buffer_reserve(&reader->in, 1)) {
        hf__reader_free(reader);
        return NULL;
    }
    return reader;
}

void hf__reader_free(hf__reader *reader)
{
    if (reader == NULL)
        return;
    hf__buffer_free(&reader->in);
    hf__free(reader->pool);
    hf__free(reader);
}

static bool is_over(const hf__reader *reader)
{
    return reader->no_memory || reader->refusal[0] != '\0';
}

void hf__reader_feed(hf__reader *reader, const void *bytes, size_t count)
{
    if (is_over(reader))
        return;
    if (!hf__buffer_reserve(&reader->in, count))
        reader->no_memory = true;
    else
        hf__buffer_append(&reader->in, bytes, count);
}

const char *hf__reader_reason(const hf__reader *reader)
{
    return reader->refusal;
}

/* ---- Finding the end ---- */

static scanned refuse(hf__reader *reader, const char *why)
{
    hf__format(reader->refusal, sizeof(reader->refusal), "%s", why);
    return SCAN_BROKEN;
}

static void pass(hf__reader *reader, size_t count)
{
    reader->passed += count;
    if (reader->too_large) { /* nobody will look at it */
        hf__buffer_take(&reader->in, reader->passed);
        reader->passed = 0;
    }
}

static void note_size(hf__reader *reader, uint64_t more)
{
    if (more > HF__REPLY_BYTES_MAX - reader->size)
        reader->too_large = true;
    else
        reader->size += (size_t)more;
}

/* Reads "<number>\r\n". Returns its length; 0: more bytes are needed; -1: it is none. */
static int read_number(const char *at, size_t count, int64_t *number)
{
    size_t i = count > 0 && *at == '-';
    bool negative = i > 0;
    uint64_t value = 0, most = negative ? UINT64_C(1) << 63 : INT64_MAX;
    size_t first = i;
    for (; i < count && at[i] >= '0' && at[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(at[i] - '0');
        if (value > (most - digit) / 10)
            return -1;
        value = 10 * value + digit;
    }
    if (i > first + 1 && at[first] == '0')
        return -1; /* as no server writes it */
    if (i > NUMBER_MAX || (i < count && (at[i] != '\r' || i == first)))
        return -1;
    if (i + 1 >= count)
        return 0;
    *number = negative ? (int64_t)(0 - value) : (int64_t)value;
    return at[i + 1] == '\n' ? (int)i + 2 : -1;
}

/* An element is complete; true: with it the reply is. */
static bool complete(hf__reader *reader)
{
    reader->place = AT_HEADER;
    while (reader->depth > 0 && --reader->left[reader->depth - 1] == 0)
        reader->depth--;
    return reader->depth == 0;
}

static scanned begin_array(hf__reader *reader, int64_t count)
{
    if (count < -1 || count > INT32_MAX)
        return refuse(reader, "an array with an impossible length");
    if (count <= 0)
        return complete(reader) ? SCAN_DONE : SCAN_MORE;
    if (reader->depth == HF__REPLY_DEPTH_MAX)
        return refuse(reader, "arrays that are nested too deep");
    reader->left[reader->depth++] = (uint64_t)count;
    reader->elements += (uint64_t)count;
    if (count > HF__REPLY_ELEMENTS_MAX || reader->elements > POOL_MAX)
        reader->too_large = true;
    return SCAN_MORE;
}

static scanned begin_bulk(hf__reader *reader, int64_t length)
{
    if (length < -1)
        return refuse(reader, "a string with an impossible length");
    if (length == -1)
        return complete(reader) ? SCAN_DONE : SCAN_MORE;
    note_size(reader, (uint64_t)length);
    note_size(reader, 2);
    reader->bulk = (uint64_t)length;
    reader->place = IN_BULK;
    return SCAN_MORE;
}

static scanned refuse_type(hf__reader *reader, char type)
{
    char shown[8];
    hf__printable(shown, sizeof(shown), &type, 1);
    hf__format(reader->refusal, sizeof(reader->refusal), "got \"%s\" as reply type", shown);
    return SCAN_BROKEN;
}

/* ---- One function for each place: SCAN_MORE with nothing passed says that bytes are missing ----
 */

static scanned scan_header(hf__reader *reader, const char *at, size_t count)
{
    int64_t number;
    if (*at == '+' || *at == '-') {
        reader->place = IN_LINE;
        note_size(reader, HEADER_BYTES);
        pass(reader, 1);
        return SCAN_MORE;
    }
    if (*at != ':' && *at != '$' && *at != '*')
        return refuse_type(reader, *at);
    char type = *at;
    int length = read_number(at + 1, count - 1, &number);
    if (length < 0)
        return refuse(reader, type == ':' ? "an integer that is none" : "a length that is none");
    if (length == 0)
        return SCAN_MORE;
    note_size(reader, (uint64_t)length + 1);
    scanned result = SCAN_MORE;
    if (type == ':')
        result = complete(reader) ? SCAN_DONE : SCAN_MORE;
    else
        result = type == '*' ? begin_array(reader, number) : begin_bulk(reader, number);
    pass(reader, (size_t)length + 1);
    return result;
}

/* A simple string or an error, up to its "\r\n". A '\r' at the end of what is there stays. */
static scanned scan_line(hf__reader *reader, const char *at, size_t count)
{
    const char *end = memchr(at, '\r', count);
    size_t length = end != NULL ? (size_t)(end - at) : count;
    bool ends = length + 1 < count && end[1] == '\n';
    if (end != NULL && !ends && length + 1 < count)
        length++; /* a '\r' of its own */
    note_size(reader, length);
    pass(reader, ends ? length + 2 : length);
    return ends && complete(reader) ? SCAN_DONE : SCAN_MORE;
}

static scanned scan_bulk(hf__reader *reader, size_t count)
{
    size_t here = reader->bulk < count ? (size_t)reader->bulk : count;
    reader->bulk -= here;
    if (reader->bulk == 0)
        reader->place = BEHIND_BULK;
    pass(reader, here);
    return SCAN_MORE;
}

static scanned scan_behind_bulk(hf__reader *reader, const char *at, size_t count)
{
    if (count < 2)
        return SCAN_MORE;
    if (memcmp(at, "\r\n", 2) != 0)
        return refuse(reader, "a string that is longer than its length");
    pass(reader, 2);
    return complete(reader) ? SCAN_DONE : SCAN_MORE;
}

static scanned scan(hf__reader *reader)
{
    scanned result = SCAN_MORE;
    size_t left = hf__buffer_length(&reader->in) - reader->passed, before = 0;
    while (result == SCAN_MORE && left > 0 && left != before) {
        const char *at = hf__buffer_front(&reader->in) + reader->passed;
        place from = reader->place;
        before = left;
        if (from == AT_HEADER)
            result = scan_header(reader, at, left);
        else if (from == IN_LINE)
            result = scan_line(reader, at, left);
        else if (from == IN_BULK)
            result = scan_bulk(reader, left);
        else
            result = scan_behind_bulk(reader, at, left);
        left = hf__buffer_length(&reader->in) - reader->passed;
        if (reader->place != from)
            before = 0; /* an empty string has passed nothing */
    }
    return result;
}

/* ---- Making the objects ---- */

static char *build_text(char *at, hf__reply *reply, hf__reply_kind kind, size_t length)
{
    *reply = (hf__reply){.kind = kind, .text = at, .length = length};
    at[length] = '\0';
    return at + length + 2;
}

/* Returns what is behind it. scan() has seen that all is there and right. */
static char *build(hf__reader *reader, char *at, hf__reply *reply)
{
    int64_t number = 0;
    char type = *at++;
    if (type == '+' || type == '-') {
        const char *end = at;
        while (end[0] != '\r' || end[1] != '\n')
            end++;
        return build_text(at, reply, type == '+' ? HF__REPLY_TEXT : HF__REPLY_ERROR,
                          (size_t)(end - at));
    }
    at += read_number(at, NUMBER_MAX + 2, &number);
    if (type == '$' && number >= 0)
        return build_text(at, reply, HF__REPLY_TEXT, (size_t)number);
    *reply = (hf__reply){.kind = type == ':' ? HF__REPLY_INTEGER : HF__REPLY_NIL};
    if (type == ':')
        reply->integer = number;
    if (type != '*' || number < 0)
        return at;
    *reply = (hf__reply){.kind = HF__REPLY_ARRAY, .elements = reader->pool + reader->pool_used};
    reply->count = (size_t)number;
    reader->pool_used += reply->count;
    for (size_t i = 0; i < reply->count; i++)
        at = build(reader, at, &reply->elements[i]);
    return at;
}

/* One that has grown is given back with the next small reply. False: out of memory. */
static bool size_pool(hf__reader *reader, size_t size)
{
    bool fits = reader->pool_size >= size;
    if (fits && (reader->pool_size == POOL_KEPT || size > POOL_KEPT))
        return true;
    size = size > POOL_KEPT ? size : POOL_KEPT;
    hf__reply *pool = hf__alloc(size * sizeof(hf__reply));
    if (pool == NULL)
        return fits;
    hf__free(reader->pool);
    reader->pool = pool;
    reader->pool_size = size;
    return true;
}

static void say_too_large(hf__reader *reader)
{
    static const char text[] = "TOOLARGE the answer is larger than 1 MiB";
    reader->root =
        (hf__reply){.kind = HF__REPLY_TOO_LARGE, .text = text, .length = sizeof(text) - 1};
}

/* The reply that was given is of no use to anybody any more. */
static void forget(hf__reader *reader)
{
    hf__buffer_take(&reader->in, reader->passed);
    reader->passed = reader->size = 0;
    reader->elements = 0;
    reader->too_large = reader->given = false;
}

hf__read_result hf__reader_next(hf__reader *reader, const hf__reply **reply)
{
    if (is_over(reader))
        return reader->no_memory ? HF__READ_NO_MEMORY : HF__READ_BROKEN;
    if (reader->given)
        forget(reader);
    scanned result = scan(reader);
    if (result == SCAN_BROKEN)
        return HF__READ_BROKEN;
    if (result == SCAN_MORE)
        return HF__READ_MORE;
    reader->given = true;
    *reply = &reader->root;
    if (reader->too_large) {
        say_too_large(reader);
        return HF__READ_REPLY;
    }
    if (!size_pool(reader, (size_t)reader->elements)) {
        reader->no_memory = true;
        return HF__READ_NO_MEMORY;
    }
    reader->pool_used = 0;
    build(reader, reader->in.bytes + reader->in.start, &reader->root);
    return HF__READ_REPLY;
}
