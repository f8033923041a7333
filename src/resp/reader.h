/* SPDX-License-Identifier: MIT */
/* Replies from the wire: feed bytes, take replies. A reply costs no allocation, and its size is
 * bounded: one that is larger is read to its end without being stored, and given as
 * HF__REPLY_TOO_LARGE, so that the next reply is found. */
#ifndef HF_RESP_READER_H
#define HF_RESP_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HF__REPLY_BYTES_MAX = 1024 * 1024, /* of one reply, as it is sent */
    HF__REPLY_ELEMENTS_MAX = 16384,    /* of one array; and of all in a reply, twice that */
    HF__REPLY_DEPTH_MAX = 7            /* of arrays in arrays */
};

typedef enum hf__reply_kind {
    HF__REPLY_NIL,
    HF__REPLY_INTEGER,
    HF__REPLY_TEXT,  /* bulk or simple string */
    HF__REPLY_ERROR, /* text is the server's message, without the '-' */
    HF__REPLY_ARRAY,
    HF__REPLY_TOO_LARGE /* text says so, like an error of the server; never in an array */
} hf__reply_kind;

typedef struct hf__reply {
    hf__reply_kind kind;
    int64_t integer;
    const char *text; /* ends with NUL after `length` bytes */
    size_t length;
    struct hf__reply *elements;
    size_t count;
} hf__reply;

/* The request was refused, by the server or because its answer was too large. */
static inline bool hf__reply_refuses(const hf__reply *reply)
{
    return reply->kind == HF__REPLY_ERROR || reply->kind == HF__REPLY_TOO_LARGE;
}

typedef enum hf__read_result {
    HF__READ_REPLY, /* *reply is set; valid until the next call on this reader */
    HF__READ_MORE,  /* more bytes are needed */
    HF__READ_BROKEN,
    HF__READ_NO_MEMORY
} hf__read_result;

typedef struct hf__reader hf__reader;

hf__reader *hf__reader_new(void); /* NULL: out of memory */
void hf__reader_free(hf__reader *reader);
void hf__reader_feed(hf__reader *reader, const void *bytes, size_t count);
hf__read_result hf__reader_next(hf__reader *reader, const hf__reply **reply);
const char *hf__reader_reason(const hf__reader *reader); /* after HF__READ_BROKEN */

#endif
