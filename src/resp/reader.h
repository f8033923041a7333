/* SPDX-License-Identifier: MIT */
/* Replies from the wire: feed bytes, take replies. The parser is hiredis', which is the only thing
 * we use of it; the objects are ours, so that a reply costs no allocation and has a bounded size.
 */
#ifndef HF_RESP_READER_H
#define HF_RESP_READER_H

#include <stddef.h>
#include <stdint.h>

enum {
    HF__REPLY_BYTES_MAX = 1024 * 1024, /* not yet a reply; its objects may take twice that */
    HF__REPLY_ELEMENTS_MAX = 16384     /* of one array */
};

typedef enum hf__reply_kind {
    HF__REPLY_NIL,
    HF__REPLY_INTEGER,
    HF__REPLY_TEXT,  /* bulk or simple string */
    HF__REPLY_ERROR, /* text is the server's message, without the '-' */
    HF__REPLY_ARRAY
} hf__reply_kind;

typedef struct hf__reply {
    hf__reply_kind kind;
    int64_t integer;
    const char *text; /* ends with NUL after `length` bytes */
    size_t length;
    struct hf__reply *elements;
    size_t count;
} hf__reply;

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
