/* SPDX-License-Identifier: MIT */
/* The reply reader, fed with anything. The network cuts a stream wherever it likes, so what comes
 * out must not depend on the cuts: the same bytes are read once in a single piece and once in
 * pieces, and both must give the same replies and the same end. Every reply is walked to its last
 * byte, so that a text that is too short or an element that was never made is seen by ASan.
 *
 * Input: a count (of 8 at most), so many sizes of pieces, which take turns, and then the stream. */
#include "fuzz.h"
#include "resp/reader.h"

#include <string.h>

enum {
    SIZES_MAX = 8,
    OBJECTS_MAX = 2 * HF__REPLY_ELEMENTS_MAX + 1, /* as reader.h says, and the reply itself */
    DEPTH_MAX = HF__REPLY_DEPTH_MAX + 1
};

/* What a reader made of a stream, as a hash. */
typedef struct reading {
    uint64_t hash;
    size_t replies;
    hf__read_result end;
    size_t objects; /* of the current reply */
} reading;

static void note(reading *r, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        r->hash = (r->hash ^ at[i]) * 1099511628211U;
}

static void walk(reading *r, const hf__reply *reply, int depth)
{
    REQUIRE(reply->kind != HF__REPLY_TOO_LARGE || depth == 1);
    REQUIRE(++r->objects <= OBJECTS_MAX && depth <= DEPTH_MAX);
    REQUIRE(reply->kind <= HF__REPLY_TOO_LARGE);
    note(r, &reply->kind, sizeof(reply->kind));
    switch (reply->kind) {
    case HF__REPLY_NIL:
        break;
    case HF__REPLY_INTEGER:
        note(r, &reply->integer, sizeof(reply->integer));
        break;
    case HF__REPLY_TEXT:
    case HF__REPLY_ERROR:
    case HF__REPLY_TOO_LARGE:
        REQUIRE(reply->text != NULL && reply->text[reply->length] == '\0');
        note(r, &reply->length, sizeof(reply->length));
        note(r, reply->text, reply->length);
        break;
    case HF__REPLY_ARRAY:
        REQUIRE(reply->count <= HF__REPLY_ELEMENTS_MAX);
        note(r, &reply->count, sizeof(reply->count));
        for (size_t i = 0; i < reply->count; i++)
            walk(r, &reply->elements[i], depth + 1);
        break;
    }
}

/* Takes all replies that are complete. */
static void drain(reading *r, hf__reader *reader)
{
    const hf__reply *reply = NULL;
    while ((r->end = hf__reader_next(reader, &reply)) == HF__READ_REPLY) {
        r->objects = 0;
        r->replies++;
        walk(r, reply, 1);
    }
}

static void check_end(const reading *r, hf__reader *reader)
{
    const hf__reply *reply = NULL;
    if (r->end == HF__READ_MORE)
        return;
    REQUIRE(r->end == HF__READ_BROKEN); /* there was memory */
    REQUIRE(hf__reader_reason(reader)[0] != '\0');
    hf__reader_feed(reader, "+OK\r\n", 5);
    REQUIRE(hf__reader_next(reader, &reply) == HF__READ_BROKEN);
}

static reading read_in_pieces(input stream, const uint8_t *sizes, size_t count)
{
    hf__reader *reader = hf__reader_new();
    reading result = {.hash = 14695981039346656037U, .end = HF__READ_MORE};
    REQUIRE(reader != NULL);
    for (size_t i = 0; stream.left > 0; i++) {
        input piece = input_take(&stream, count > 0 ? (size_t)sizes[i % count] + 1 : stream.left);
        hf__reader_feed(reader, piece.at, piece.left);
        drain(&result, reader);
    }
    check_end(&result, reader);
    hf__reader_free(reader);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const uint8_t single_bytes[] = {0};
    input in = {bytes, count};
    uint8_t sizes[SIZES_MAX];
    size_t pieces = input_byte(&in) % (SIZES_MAX + 1);
    for (size_t i = 0; i < pieces; i++)
        sizes[i] = input_byte(&in);
    reading whole = read_in_pieces(in, NULL, 0);
    reading cut = read_in_pieces(in, sizes, pieces);
    reading minced = read_in_pieces(in, single_bytes, 1);
    REQUIRE(whole.replies == cut.replies && whole.hash == cut.hash && whole.end == cut.end);
    REQUIRE(whole.replies == minced.replies && whole.hash == minced.hash);
    REQUIRE(whole.end == minced.end);
    return 0;
}
