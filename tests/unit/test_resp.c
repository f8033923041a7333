/* SPDX-License-Identifier: MIT */
/* The wire format in both directions. What a peer sends is hostile until proven otherwise: every
 * limit is reached once, nothing depends on where the stream is cut, and no allocation may fail
 * without being noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gate.h"
#include "resp/encode.h"
#include "resp/reader.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { CHUNK = 16 * 1024 /* as the driver reads */ };

/* ---- Requests ---- */

static void requests_are_arrays_of_bulk_strings(void **state)
{
    (void)state;
    /* What looks like protocol inside a word is only bytes. */
    static const char expected[] = "*4\r\n$4\r\nEVAL\r\n$0\r\n\r\n$3\r\na\0b\r\n"
                                   "$12\r\n\r\n$1\r\nx\r\n*1\r\r\n*0\r\n";
    hf__slice words[] = {HF__SLICE("EVAL"), HF__SLICE(""), HF__SLICE("a\0b"),
                         hf__slice_text("\r\n$1\r\nx\r\n*1\r")};
    hf__buffer out = {0};
    assert_true(hf__resp_encode(&out, words, COUNT_OF(words)));
    assert_true(hf__resp_encode(&out, NULL, 0));
    assert_int_equal(hf__buffer_length(&out), sizeof(expected) - 1);
    assert_memory_equal(hf__buffer_front(&out), expected, sizeof(expected) - 1);
    hf__buffer_free(&out);
}

static void slices_know_their_length(void **state)
{
    (void)state;
    assert_int_equal(HF__SLICE("a\0b").length, 3);
    assert_int_equal(hf__slice_text("abc").length, 3);
    assert_int_equal(hf__slice_text("").length, 0);
}

static void a_request_is_written_whole_or_not_at_all(void **state)
{
    (void)state;
    char *large = calloc(1, 100000);
    hf__slice small[] = {HF__SLICE("PING")};
    hf__slice words[] = {HF__SLICE("SET"), HF__SLICE("x"), {large, 100000}};
    hf__buffer out = {0};
    assert_true(hf__resp_encode(&out, small, 1));
    gate_fail_at(0);
    assert_false(hf__resp_encode(&out, words, COUNT_OF(words)));
    assert_true(gate_open());
    assert_int_equal(hf__buffer_length(&out), 14);
    assert_memory_equal(hf__buffer_front(&out), "*1\r\n$4\r\nPING\r\n", 14);
    assert_true(hf__resp_encode(&out, words, COUNT_OF(words)));
    assert_int_equal(hf__buffer_length(&out), 14 + 4 + 9 + 7 + 9 + 100000 + 2);
    hf__buffer_free(&out);
    free(large);
}

/* ---- Replies as text, to compare them ---- */

enum { NOTES_MAX = 64 * 1024 };

typedef struct notebook {
    char text[NOTES_MAX];
    size_t length;
} notebook;

static void note(notebook *notes, const char *bytes, size_t count)
{
    assert_true(notes->length + count < NOTES_MAX);
    memcpy(notes->text + notes->length, bytes, count);
    notes->length += count;
}

static void note_number(notebook *notes, char kind, long long number)
{
    char text[32];
    int length = snprintf(text, sizeof(text), "%c%lld ", kind, number);
    note(notes, text, (size_t)length);
}

static void note_reply(notebook *notes, const hf__reply *reply)
{
    switch (reply->kind) {
    case HF__REPLY_NIL:
        note(notes, "nil ", 4);
        break;
    case HF__REPLY_INTEGER:
        note_number(notes, ':', reply->integer);
        break;
    case HF__REPLY_TEXT:
    case HF__REPLY_ERROR:
        note_number(notes, reply->kind == HF__REPLY_TEXT ? '$' : '-', (long long)reply->length);
        note(notes, reply->text, reply->length);
        assert_int_equal(reply->text[reply->length], '\0');
        break;
    case HF__REPLY_ARRAY:
        note_number(notes, '*', (long long)reply->count);
        for (size_t i = 0; i < reply->count; i++)
            note_reply(notes, &reply->elements[i]);
        note(notes, "end ", 4);
        break;
    case HF__REPLY_TOO_LARGE:
        assert_non_null(strstr(reply->text, "larger than 1 MiB"));
        assert_int_equal(reply->text[reply->length], '\0');
        note(notes, "large ", 6);
        break;
    }
}

/* Feeds a copy of exactly this size, so that reading beyond it is seen. */
static void feed(hf__reader *reader, const char *bytes, size_t count)
{
    char *copy = malloc(count > 0 ? count : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    hf__reader_feed(reader, copy, count);
    free(copy);
}

/* Takes all replies that are there; returns what came instead of the next. */
static hf__read_result take_all(hf__reader *reader, notebook *notes)
{
    const hf__reply *reply = NULL;
    hf__read_result result;
    while ((result = hf__reader_next(reader, &reply)) == HF__READ_REPLY) {
        note_reply(notes, reply);
        note(notes, "\n", 1);
    }
    return result;
}

static void expect_replies(const char *bytes, size_t count, const char *expected)
{
    static notebook notes;
    hf__reader *reader = hf__reader_new();
    assert_non_null(reader);
    notes.length = 0;
    feed(reader, bytes, count);
    assert_int_equal(take_all(reader, &notes), HF__READ_MORE);
    note(&notes, "", 1);
    assert_string_equal(notes.text, expected);
    hf__reader_free(reader);
}

#define EXPECT_REPLIES(bytes, expected) expect_replies(bytes, sizeof(bytes) - 1, expected)

/* ---- Well-formed replies ---- */

static void every_kind_of_reply_is_read(void **state)
{
    (void)state;
    EXPECT_REPLIES("", "");
    EXPECT_REPLIES("+OK\r\n", "$2 OK\n");
    EXPECT_REPLIES("+\r\n", "$0 \n");
    EXPECT_REPLIES("-ERR no\r\n", "-6 ERR no\n");
    EXPECT_REPLIES(":0\r\n", ":0 \n");
    EXPECT_REPLIES(":-1\r\n", ":-1 \n");
    EXPECT_REPLIES(":9223372036854775807\r\n", ":9223372036854775807 \n");
    EXPECT_REPLIES(":-9223372036854775808\r\n", ":-9223372036854775808 \n");
    EXPECT_REPLIES("$5\r\nhello\r\n", "$5 hello\n");
    EXPECT_REPLIES("$0\r\n\r\n", "$0 \n");
    EXPECT_REPLIES("$-1\r\n", "nil \n");
    EXPECT_REPLIES("*-1\r\n", "nil \n");
    EXPECT_REPLIES("*0\r\n", "*0 end \n");
    EXPECT_REPLIES("*2\r\n$1\r\nG\r\n:10000\r\n", "*2 $1 G:10000 end \n");
    EXPECT_REPLIES("*3\r\n$-1\r\n-ERR x\r\n*-1\r\n", "*3 nil -5 ERR xnil end \n");
    EXPECT_REPLIES("*2\r\n*2\r\n:1\r\n*0\r\n*1\r\n*1\r\n+a\r\n",
                   "*2 *2 :1 *0 end end *1 *1 $1 aend end end \n");
    EXPECT_REPLIES("+a\r\n:1\r\n$1\r\nb\r\n", "$1 a\n:1 \n$1 b\n"); /* several at once */
}

static void bulk_strings_are_binary(void **state)
{
    (void)state;
    const hf__reply *reply = NULL;
    hf__reader *reader = hf__reader_new();
    feed(reader, "$9\r\na\0b\r\n$1\r\n\r\n", 15);
    assert_int_equal(hf__reader_next(reader, &reply), HF__READ_REPLY);
    assert_int_equal(reply->kind, HF__REPLY_TEXT);
    assert_int_equal(reply->length, 9);
    assert_memory_equal(reply->text, "a\0b\r\n$1\r\n", 10); /* with the NUL after it */
    hf__reader_free(reader);
}

/* ---- Cut anywhere ---- */

static const char transcript[] =
    "+OK\r\n-ERR unknown\r\n:1234567\r\n:-5\r\n$11\r\nhello\0world\r\n$-1\r\n*-1\r\n*0\r\n"
    "*3\r\n$1\r\nB\r\n:-1\r\n$26\r\nc:1@host:1/1 \r\n:5\r\n$1\r\nxyz\r\n"
    "*2\r\n*3\r\n:1\r\n*1\r\n$2\r\n\r\n\r\n$-1\r\n*1\r\n-NO\r\n"
    "$40\r\n24ef20ae6677799927844fd0b8402d8ca02e5ca8\r\n*2\r\n$1\r\nG\r\n:10000\r\n+end\r\n";

static void read_in_pieces(notebook *notes, size_t first, size_t piece)
{
    size_t length = sizeof(transcript) - 1;
    hf__reader *reader = hf__reader_new();
    assert_non_null(reader);
    notes->length = 0;
    for (size_t at = 0, count = first; at < length; at += count, count = piece) {
        count = count < length - at ? count : length - at;
        feed(reader, transcript + at, count);
        assert_int_equal(take_all(reader, notes), HF__READ_MORE);
    }
    hf__reader_free(reader);
}

static void replies_do_not_depend_on_where_the_stream_is_cut(void **state)
{
    (void)state;
    static notebook whole, cut;
    size_t length = sizeof(transcript) - 1;
    read_in_pieces(&whole, length, length);
    size_t lines = 0;
    for (size_t i = 0; i < whole.length; i++)
        lines += whole.length - i >= 4 && memcmp(whole.text + i, "end\n", 4) == 0;
    assert_int_equal(lines, 1); /* the last reply has been read */
    for (size_t first = 1; first < length; first++) {
        read_in_pieces(&cut, first, length);
        assert_int_equal(cut.length, whole.length);
        assert_memory_equal(cut.text, whole.text, whole.length);
    }
    for (size_t piece = 1; piece < 20; piece++) {
        read_in_pieces(&cut, piece, piece);
        assert_int_equal(cut.length, whole.length);
        assert_memory_equal(cut.text, whole.text, whole.length);
    }
}

/* ---- Limits ---- */

/* Feeds bytes `count` times, in chunks of the size that the driver reads, until the reader gives a
 * reply or gives up. `fed` tells how many bytes that took. */
static hf__read_result feed_many(hf__reader *reader, const char *bytes, size_t length, size_t count,
                                 size_t *fed)
{
    static char chunk[CHUNK];
    const hf__reply *reply = NULL;
    hf__read_result result = HF__READ_MORE;
    size_t total = length * count, at = 0;
    while (at < total && result == HF__READ_MORE) {
        size_t size = total - at < CHUNK ? total - at : CHUNK;
        for (size_t i = 0; i < size; i++)
            chunk[i] = bytes[(at + i) % length];
        hf__reader_feed(reader, chunk, size);
        at += size;
        result = hf__reader_next(reader, &reply);
    }
    if (fed != NULL)
        *fed = at;
    return result;
}

/* A broken reader tells why, however often it is asked. */
static void expect_broken(hf__reader *reader, const char *reason)
{
    const hf__reply *reply = NULL;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf__reader_next(reader, &reply), HF__READ_BROKEN);
        assert_non_null(strstr(hf__reader_reason(reader), reason));
    }
    hf__reader_free(reader);
}

static void expect_garbage(const char *bytes, size_t count, const char *reason)
{
    hf__reader *reader = hf__reader_new();
    assert_non_null(reader);
    feed(reader, bytes, count);
    expect_broken(reader, reason);
}

static void garbage_breaks_the_reader(void **state)
{
    static const struct {
        const char *bytes;
        const char *reason;
    } cases[] = {
        {"HTTP/1.1 400 Bad Request\r\n\r\n", "H"},
        {"\r\n", "reply type"},
        {"SSH-2.0-OpenSSH\r\n", "S"},
        {"\x15\x03\x01", "reply type"},
        {":12a\r\n", "integer"},
        {":\r\n", "integer"},
        {":99999999999999999999\r\n", "integer"},
        {"$x\r\n", "length"},
        {"$-2\r\n", "length"},
        {"$99999999999999999999\r\n", "length"},
        {"*-2\r\n", "length"},
        {"*x\r\n", "length"},
        {"*2147483648\r\n", "length"},
        {":0000000000000000000000000", "integer"},
        {"$7777777777777777777777777", "length"},
        {"$1\r\nab\r\n", "longer"},
        {"$1\r\na\rb", "longer"},
        {":1\rx", "integer"},
        {":05\r\n", "integer"},
        {"$01\r\na\r\n", "length"},
        {"*1\r:", "length"},
        {"*2\r\n:1\r\nX\r\n", "X"},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "nested"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        expect_garbage(cases[i].bytes, strlen(cases[i].bytes), cases[i].reason);
    expect_garbage("\0\0\0\0", 4, "reply type");
}

/* Broken is not the same as out of memory, also when more bytes come. */
static void a_broken_reader_stays_broken(void **state)
{
    static const char *const broken[] = {"HTTP", "*2147483648\r\n", ":x\r\n"};
    const hf__reply *reply = NULL;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        hf__reader *reader = hf__reader_new();
        feed(reader, broken[i], strlen(broken[i]));
        hf__read_result first = hf__reader_next(reader, &reply);
        feed(reader, "+OK\r\n", 5);
        hf__read_result second = hf__reader_next(reader, &reply);
        hf__reader_free(reader);
        assert_int_equal(first, HF__READ_BROKEN);
        assert_int_equal(second, HF__READ_BROKEN);
    }
}

static void replies_before_the_garbage_still_count(void **state)
{
    (void)state;
    static notebook notes;
    hf__reader *reader = hf__reader_new();
    notes.length = 0;
    feed(reader, "+a\r\n:1\r\nHTTP", 12);
    assert_int_equal(take_all(reader, &notes), HF__READ_BROKEN);
    assert_int_equal(notes.length, 9);
    assert_memory_equal(notes.text, "$1 a\n:1 \n", 9);
    expect_broken(reader, "H");
}

/* How many bytes it has taken from the heap at most, as far as the buffer goes, cannot be seen from
 * here; but each allocation is asked for at the gate, and what is dropped asks for none. */
static void expect_too_large(const char *start, const char *bytes, size_t length, size_t count,
                             const char *end)
{
    static notebook notes;
    hf__reader *reader = hf__reader_new();
    notes.length = 0;
    feed(reader, start, strlen(start));
    long before = atomic_load(&gate_asked);
    assert_int_equal(feed_many(reader, bytes, length, count, NULL), HF__READ_MORE);
    assert_in_range(atomic_load(&gate_asked) - before, 0,
                    20); /* it does not grow with what comes */
    feed(reader, end, strlen(end));
    feed(reader, "+next\r\n", 7); /* and the reader goes on */
    assert_int_equal(take_all(reader, &notes), HF__READ_MORE);
    assert_int_equal(notes.length, 7 + 8);
    assert_memory_equal(notes.text, "large \n$4 next\n", 15);
    hf__reader_free(reader);
}

enum { MIB = 1024 * 1024 };

static void a_text_that_is_too_large_is_passed_over(void **state)
{
    (void)state;
    expect_too_large("$2097152\r\n", "v", 1, 2 * MIB, "\r\n");
    expect_too_large("$33554432\r\n", "\r\n+", 4, 8 * MIB, "\r\n");
    expect_too_large("+", "v", 1, 3 * MIB, "\r\n");
    expect_too_large("-ERR ", "\r", 1, 3 * MIB, "\r\n");
    expect_too_large("*3\r\n:1\r\n$2097152\r\n", "v", 1, 2 * MIB, "\r\n:2\r\n");
    expect_too_large("*2\r\n*1\r\n$2097152\r\n", "v", 1, 2 * MIB, "\r\n$3\r\nend\r\n");
}

static void an_array_that_is_too_large_is_passed_over(void **state)
{
    (void)state;
    expect_too_large("*16385\r\n", ":1\r\n", 4, 16385 - 1, ":1\r\n");
    expect_too_large("*1\r\n*16385\r\n", ":1\r\n", 4, 16385 - 1, ":1\r\n");
    expect_too_large("*1000000\r\n", "$1\r\na\r\n", 7, 1000000 - 1, "$-1\r\n");
}

static void what_never_becomes_a_reply_is_bounded(void **state)
{
    static const char *const starts[] = {"+", "-", "$2147483647\r\n", "$9223372036854775807\r\n",
                                         "*2\r\n:1\r\n$5000000000\r\n"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        hf__reader *reader = hf__reader_new();
        feed(reader, starts[i], strlen(starts[i]));
        long before = atomic_load(&gate_asked);
        assert_int_equal(feed_many(reader, "7", 1, 8 * (size_t)HF__REPLY_BYTES_MAX, NULL),
                         HF__READ_MORE);
        assert_in_range(atomic_load(&gate_asked) - before, 0, 20);
        hf__reader_free(reader);
    }
}

static void a_reply_of_many_parts_is_bounded(void **state)
{
    (void)state;
    hf__reader *reader = hf__reader_new();
    char *bulk = malloc(60010);
    memcpy(bulk, "$60000\r\n", 8);
    memset(bulk + 8, 'v', 60000);
    memcpy(bulk + 60008, "\r\n", 2);
    expect_too_large("*1000\r\n", bulk, 60010, 999, "$0\r\n\r\n");
    feed(reader, "*15\r\n", 5); /* while one of less than the limit is read */
    assert_int_equal(feed_many(reader, bulk, 60010, 15, NULL), HF__READ_REPLY);
    hf__reader_free(reader);
    free(bulk);
}

/* Array headers are small and ask for much: 16384 elements of nearly 50 bytes for 8 bytes sent. */
static void nested_array_headers_cannot_take_much_memory(void **state)
{
    (void)state;
    hf__reader *reader = hf__reader_new();
    long before = atomic_load(&gate_asked);
    assert_int_equal(feed_many(reader, "*16384\r\n", 8, 6, NULL), HF__READ_MORE);
    assert_in_range(atomic_load(&gate_asked) - before, 0, 2);
    hf__reader_free(reader);
}

static void the_largest_array_is_read(void **state)
{
    (void)state;
    const hf__reply *reply = NULL;
    hf__reader *reader = hf__reader_new();
    feed(reader, "*16384\r\n", 8);
    assert_int_equal(feed_many(reader, "$1\r\na\r\n", 7, HF__REPLY_ELEMENTS_MAX, NULL),
                     HF__READ_REPLY);
    feed(reader, ":5\r\n", 4); /* and the reader goes on */
    assert_int_equal(hf__reader_next(reader, &reply), HF__READ_REPLY);
    assert_int_equal(reply->integer, 5);
    hf__reader_free(reader);
}

static void seven_levels_of_arrays_are_read(void **state)
{
    (void)state;
    EXPECT_REPLIES("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
                   "*1 *1 *1 *1 *1 *1 *1 :1 end end end end end end end \n");
}

/* ---- Memory ---- */

static void small_replies_cost_no_allocation(void **state)
{
    (void)state;
    static notebook notes;
    hf__reader *reader = hf__reader_new();
    notes.length = 0;
    feed(reader, "+warm\r\n", 7);
    take_all(reader, &notes);
    long before = atomic_load(&gate_asked);
    for (int i = 0; i < 1000; i++) {
        notes.length = 0;
        feed(reader, "*2\r\n$1\r\nG\r\n:10000\r\n", 19);
        assert_int_equal(take_all(reader, &notes), HF__READ_MORE);
        assert_int_equal(notes.length, 19);
    }
    assert_int_equal(atomic_load(&gate_asked) - before, 0);
    hf__reader_free(reader);
}

static void refused_allocations_are_few_whatever_comes(void **state)
{
    (void)state;
    long before = atomic_load(&gate_asked);
    hf__reader *reader = hf__reader_new();
    assert_int_equal(feed_many(reader, "*1\r\n", 4, 100000, NULL), HF__READ_BROKEN);
    hf__reader_free(reader);
    reader = hf__reader_new();
    assert_int_equal(feed_many(reader, "z", 1, 100000000, NULL), HF__READ_BROKEN);
    hf__reader_free(reader);
    assert_in_range(atomic_load(&gate_asked) - before, 1, 20);
}

/* One reply that needs several blocks, read with one allocation refused; false once none was. */
static bool read_starved(long refused)
{
    static notebook notes;
    static char bulk[5000];
    memset(bulk, 'b', sizeof(bulk));
    notes.length = 0;
    gate_fail_at(refused);
    hf__reader *reader = hf__reader_new();
    hf__read_result result = HF__READ_NO_MEMORY;
    if (reader != NULL) {
        feed(reader, "*4\r\n:1\r\n$5000\r\n", 15);
        feed(reader, bulk, sizeof(bulk));
        feed(reader, "\r\n*100\r\n", 8);
        result = take_all(reader, &notes);
        for (int i = 0; i < 100; i++)
            hf__reader_feed(reader, "+x\r\n", 4);
        hf__reader_feed(reader, "$3\r\nend\r\n", 9);
        result = take_all(reader, &notes);
        if (result == HF__READ_NO_MEMORY) {
            feed(reader, "+OK\r\n", 5);
            assert_int_equal(take_all(reader, &notes), HF__READ_NO_MEMORY); /* for good */
        }
    }
    bool starved = gate_open();
    hf__reader_free(reader);
    assert_int_equal(result, starved ? HF__READ_NO_MEMORY : HF__READ_MORE);
    assert_int_equal(notes.length > 0, !starved);
    return starved;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long refused = 0;
    while (read_starved(refused))
        refused++;
    assert_true(refused >= 4); /* reader, pool, buffer, and more for the large parts */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_arrays_of_bulk_strings),
        cmocka_unit_test(slices_know_their_length),
        cmocka_unit_test(a_request_is_written_whole_or_not_at_all),
        cmocka_unit_test(every_kind_of_reply_is_read),
        cmocka_unit_test(bulk_strings_are_binary),
        cmocka_unit_test(replies_do_not_depend_on_where_the_stream_is_cut),
        cmocka_unit_test(garbage_breaks_the_reader),
        cmocka_unit_test(a_broken_reader_stays_broken),
        cmocka_unit_test(replies_before_the_garbage_still_count),
        cmocka_unit_test(a_text_that_is_too_large_is_passed_over),
        cmocka_unit_test(an_array_that_is_too_large_is_passed_over),
        cmocka_unit_test(what_never_becomes_a_reply_is_bounded),
        cmocka_unit_test(a_reply_of_many_parts_is_bounded),
        cmocka_unit_test(nested_array_headers_cannot_take_much_memory),
        cmocka_unit_test(the_largest_array_is_read),
        cmocka_unit_test(seven_levels_of_arrays_are_read),
        cmocka_unit_test(small_replies_cost_no_allocation),
        cmocka_unit_test(refused_allocations_are_few_whatever_comes),
        cmocka_unit_test(every_allocation_may_fail),
    };
    gate_install();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
