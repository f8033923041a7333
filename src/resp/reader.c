/* SPDX-License-Identifier: MIT */
/* Wraps hiredis' reader. It calls us back to build objects; we build them in an arena that lives
 * as long as the reader and is emptied for every reply. A peer cannot make us use more than about
 * three times HF__REPLY_BYTES_MAX: bytes that do not form a reply are counted, array headers are
 * checked before their elements are allocated, and the arena has a limit. hiredis itself refuses
 * nesting deeper than seven.
 *
 * A reader that has once been broken or out of memory stays so; its link is closed and gets a new
 * one. */
#include "resp/reader.h"

#include <hiredis/read.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

enum { BLOCK_SIZE = 2048 };

typedef struct block {
    struct block *next;
    size_t used;
    size_t capacity;
    _Alignas(max_align_t) char bytes[];
} block;

struct hf__reader {
    redisReader *parser;
    block *blocks; /* the current one first; the last one is kept between replies */
    size_t arena_size;
    hf__reply root;
    const char *refusal; /* why we, not the parser, gave up */
    bool no_memory;
};

static block *block_new(size_t size)
{
    size_t capacity = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    block *fresh = hf__alloc(sizeof(block) + capacity);
    if (fresh != NULL)
        fresh->capacity = capacity;
    return fresh;
}

static void *arena_take(hf__reader *reader, size_t size)
{
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (reader->arena_size + size > 2 * (size_t)HF__REPLY_BYTES_MAX) {
        reader->refusal = "reply too large";
        return NULL;
    }
    block *current = reader->blocks;
    if (current->capacity - current->used < size) {
        current = block_new(size);
        if (current == NULL) {
            reader->no_memory = true;
            return NULL;
        }
        current->next = reader->blocks;
        reader->blocks = current;
    }
    void *place = current->bytes + current->used;
    current->used += size;
    reader->arena_size += size;
    return place;
}

static void arena_reset(hf__reader *reader)
{
    while (reader->blocks->next != NULL) {
        block *next = reader->blocks->next;
        hf__free(reader->blocks);
        reader->blocks = next;
    }
    reader->blocks->used = 0;
    reader->arena_size = 0;
}

/* The place of the object that the parser is about to make: in its parent array, or the root. */
static hf__reply *place_of(const redisReadTask *task)
{
    hf__reader *reader = task->privdata;
    if (task->parent == NULL)
        return &reader->root;
    hf__reply *array = task->parent->obj;
    return &array->elements[task->idx];
}

static void *make_text(const redisReadTask *task, char *bytes, size_t length)
{
    char *copy = arena_take(task->privdata, length + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    hf__reply *reply = place_of(task);
    *reply = (hf__reply){.text = copy, .length = length};
    reply->kind = task->type == REDIS_REPLY_ERROR ? HF__REPLY_ERROR : HF__REPLY_TEXT;
    return reply;
}

static void *make_array(const redisReadTask *task, int count)
{
    hf__reader *reader = task->privdata;
    if (count < 0 || count > HF__REPLY_ELEMENTS_MAX) {
        reader->refusal = "array with too many elements";
        return NULL;
    }
    hf__reply *reply = place_of(task);
    hf__reply *elements = arena_take(reader, (size_t)count * sizeof(hf__reply) + 1);
    if (elements == NULL)
        return NULL;
    memset(elements, 0, (size_t)count * sizeof(hf__reply));
    *reply = (hf__reply){.kind = HF__REPLY_ARRAY, .elements = elements, .count = (size_t)count};
    return reply;
}

static void *make_integer(const redisReadTask *task, long long value)
{
    hf__reply *reply = place_of(task);
    *reply = (hf__reply){.kind = HF__REPLY_INTEGER, .integer = value};
    return reply;
}

static void *make_nil(const redisReadTask *task)
{
    hf__reply *reply = place_of(task);
    *reply = (hf__reply){.kind = HF__REPLY_NIL};
    return reply;
}

static void free_nothing(void *reply)
{
    (void)reply; /* objects live in the arena */
}

static redisReplyObjectFunctions makers = {.createString = make_text,
                                           .createArray = make_array,
                                           .createInteger = make_integer,
                                           .createNil = make_nil,
                                           .freeObject = free_nothing};

hf__reader *hf__reader_new(void)
{
    hf__reader *reader = hf__alloc(sizeof(*reader));
    if (reader == NULL)
        return NULL;
    reader->blocks = block_new(0);
    if (reader->blocks != NULL && hf__memory_allowed())
        reader->parser = redisReaderCreateWithFunctions(&makers);
    if (reader->parser == NULL) {
        hf__reader_free(reader);
        return NULL;
    }
    reader->parser->privdata = reader;
    return reader;
}

void hf__reader_free(hf__reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->parser != NULL)
        redisReaderFree(reader->parser);
    while (reader->blocks != NULL) {
        block *next = reader->blocks->next;
        hf__free(reader->blocks);
        reader->blocks = next;
    }
    hf__free(reader);
}

void hf__reader_feed(hf__reader *reader, const void *bytes, size_t count)
{
    if (reader->no_memory || reader->refusal != NULL || reader->parser->err != 0)
        return; /* it stays as it is */
    if (!hf__memory_allowed() || redisReaderFeed(reader->parser, bytes, count) != REDIS_OK)
        reader->no_memory = true;
}

static hf__read_result read_failure(const hf__reader *reader)
{
    return reader->no_memory || (reader->refusal == NULL && reader->parser->err == REDIS_ERR_OOM)
               ? HF__READ_NO_MEMORY
               : HF__READ_BROKEN;
}

hf__read_result hf__reader_next(hf__reader *reader, const hf__reply **reply)
{
    void *made = NULL;
    if (reader->no_memory || reader->refusal != NULL)
        return read_failure(reader);
    if (reader->parser->ridx == -1)
        arena_reset(reader); /* between replies: nothing of the last one is in use any more */
    if (redisReaderGetReply(reader->parser, &made) != REDIS_OK)
        return read_failure(reader);
    if (made != NULL) {
        *reply = &reader->root;
        return HF__READ_REPLY;
    }
    if (reader->parser->len - reader->parser->pos > HF__REPLY_BYTES_MAX) {
        reader->refusal = "reply too large";
        return HF__READ_BROKEN;
    }
    return HF__READ_MORE;
}

const char *hf__reader_reason(const hf__reader *reader)
{
    return reader->refusal != NULL ? reader->refusal : reader->parser->errstr;
}
