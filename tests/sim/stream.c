/* SPDX-License-Identifier: MIT */
/* See stream.h. Commands are made from templates, in which a word that begins with '$' stands for
 * something random:
 *
 *   $s $h $l $z  a key that is mostly of that type     $k  any key
 *   $L           a lock; $Q $F $W $O its queue, fence, notes and holders; $q a queue
 *   $H $! $o     the value of a hold, its tombstone, an owner
 *   $v $m $c     a value, a member, a channel
 *   $i $n $N     a small integer; one that may be none, or too big; one that surely is
 *   $f $b        a score, the bound of a range; both may be nonsense
 *   $t $T $A $P  expiries that are far away: in ms, in s, as an instant; and an instant long past
 *   $1 to $7     SHA-1 of acquire, release, renew, revoke, break, inspect, refresh
 *   $B           a fence that is far ahead of all clocks, so that both servers count on from it
 *   $g $_        a pattern; nothing
 *   $e           a script
 *
 * One command in twenty has a word too many or too few. Queues and holders are written by scripts
 * only: their scores are times, which the two servers read a moment apart, so their order is not
 * compared.
 */
#include "stream.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "lua/scripts.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One word a line would hide the tables. */
/* clang-format off */
static const char *const templates[] = {
    "GET $s", "GET $s", "GET $k", "MGET $s $k $h", "MGET $k", "MGET", "SET $s $v", "SET $s $n", "SET $k $v", "SET $s $v NX",
    "SET $s $v XX", "SET $s $v NX PX $t", "SET $s $v PX $t", "SET $s $v EX $T", "SET $s $v PXAT $A",
    "SET $s $v GET", "SET $s $v NX GET", "SET $s $v XX GET PX $t", "SET $s $v KEEPTTL",
    "SET $s $v KEEPTTL PX $t", "SET $s $v NX XX", "SET $s $v PX $N", "SET $s $v EX $N",
    "SET $s $v PX", "SET $s $v px $t nx", "SET $s $v EXAT 7", "SET $s $v PX 0", "SET $s $v EX -1",
    "SET $s $v $m", "DEL $k", "DEL $k $k $k", "DEL $s", "EXISTS $k", "EXISTS $k $k $k", "PTTL $k",
    "PTTL $s", "TTL $k", "PEXPIRE $k $t", "PEXPIRE $k $N", "PEXPIRE $k 0", "PEXPIRE $k -1",
    "PEXPIRE $k $t NX", "PEXPIRE $k $t XX", "PEXPIRE $k $t GT", "PEXPIRE $k $t LT",
    "PEXPIRE $k $t NX GT", "PEXPIRE $k $t GT LT", "PEXPIRE $k $t $m", "PEXPIREAT $k $A",
    "PEXPIREAT $k $P", "PEXPIREAT $k $n", "EXPIRE $k $T", "EXPIRE $k $N", "EXPIRE $k $T LT",
    "PERSIST $k", "TYPE $k", "INCR $s", "INCR $s", "INCRBY $s $i", "INCRBY $s $n", "APPEND $s $v",
    "STRLEN $s", "STRLEN $k", "HSET $h $m $v", "HSET $h $m $v $m $v", "HSET $h $m $n",
    "HSET $h $m $v $m", "HGET $h $m", "HGET $k $m", "HDEL $h $m", "HDEL $h $m $m $m", "HGETALL $h",
    "HLEN $h", "HINCRBY $h $m $i", "HINCRBY $h $m $n", "HEXISTS $h $m", "HMGET $h $m $m $m",
    "HMGET $k $m", "LPUSH $l $v", "LPUSH $l $m $m $m", "RPUSH $l $v", "RPUSH $l $m $m",
    "RPUSH $k $m", "LPOP $l", "LPOP $l $i", "LPOP $l $n", "RPOP $l", "RPOP $l $i", "LLEN $l",
    "LLEN $k", "LRANGE $l 0 -1", "LRANGE $l $i $i", "LRANGE $l $n $n", "LREM $l $i $m",
    "LREM $l 0 $m", "LREM $l -1 $m", "ZADD $z $f $m", "ZADD $z $f $m $f $m",
    "ZADD $z $i $m $i $m $i $m", "ZADD $z NX $f $m", "ZADD $z XX $f $m", "ZADD $z GT $f $m",
    "ZADD $z LT CH $f $m", "ZADD $z XX GT CH $f $m", "ZADD $z NX GT $f $m", "ZADD $z NX XX $f $m",
    "ZADD $z CH $f $m $f $m", "ZADD $z $f $m $f", "ZREM $z $m", "ZREM $z $m $m $m", "ZSCORE $z $m",
    "ZSCORE $k $m", "ZCARD $z", "ZCARD $k", "ZRANGE $z 0 -1 WITHSCORES", "ZRANGE $z $i $i",
    "ZRANGE $z $i $i REV", "ZRANGE $z $n $n", "ZRANGE $z $b $b BYSCORE",
    "ZRANGE $z $b $b BYSCORE REV", "ZRANGE $z $b $b BYSCORE LIMIT $i $i",
    "ZRANGE $z $b $b REV BYSCORE LIMIT $i $i WITHSCORES", "ZRANGE $z $i $i LIMIT $i $i",
    "ZRANGE $z $b $b BYSCORE LIMIT $n", "ZRANGE $z $i $i $m", "ZRANGEBYSCORE $z $b $b",
    "ZRANGEBYSCORE $z -inf +inf WITHSCORES", "ZRANGEBYSCORE $z $b $b LIMIT $i $i",
    "ZRANGEBYSCORE $z $b $b REV", "ZREMRANGEBYSCORE $z $b $b", "ZREMRANGEBYRANK $z $i $i",
    "ZREMRANGEBYRANK $z $n $n", "ZRANK $z $m", "ZCOUNT $z $b $b", "ZPOPMIN $z", "ZPOPMIN $z $i",
    "ZPOPMIN $z $n", "ZSCORE $q $!", "ZSCORE $q $!", "ZCARD $q", "ZREM $q $!", "PTTL $q", "DEL $q",
    "ZREVRANGEBYSCORE $z $b $b", "ZREVRANGEBYSCORE $z $b $b WITHSCORES",
    "ZREVRANGEBYSCORE $z +inf $b WITHSCORES LIMIT $i $i", "ZREVRANGEBYSCORE $z $b $b LIMIT $n $i",
    "ZCOUNT $z $b +inf", "SCAN 0 COUNT 1000", "SCAN 0 MATCH $g COUNT 1000",
    "SCAN 0 COUNT 1000 MATCH $g", "SCAN x COUNT 1000", "SCAN 0 COUNT $N", "SCAN 0 COUNT 0",
    "SCAN 0 $m 1000", "TIME", "PING", "PING $v", "ECHO $v", "DBSIZE", "PUBLISH $c $v", "PUBLISH $c $v",
    "PUBSUB NUMSUB", "PUBSUB NUMSUB $c $c", "PUBSUB NUMSUB $c", "PUBSUB $m",
    "SCRIPT EXISTS $1 $2 $v", "SCRIPT LOAD $e", "SCRIPT $m", "SCRIPT FLUSH $m", "AUTH $v",
    "AUTH default $v", "AUTH $m $v", "SELECT 0", "SELECT 16", "SELECT $N", "CLIENT SETNAME $m",
    "CLIENT ID", "CLIENT $m", "INFO server", "INFO replication", "CONFIG GET nothing-like-this",
    "CONFIG $m", "$m $v", "NOSUCHCOMMAND $v $m", "EVAL $e 0", "EVAL $e 1 $k $v",
    "EVAL $e 2 $s $z $m $i", "EVAL $e $n $k", "EVAL $e -1 $k", "EVAL $e 3 $h $l $z $m $v $f",
    "EVAL $e 1 $s $i $m",
};

/* Drawn two times out of five, since these are what the library lives on. */
static const char *const lock_templates[] = {
    "EVALSHA $1 3 $L $Q $F $H $t $t", "EVALSHA $1 3 $L $Q $F $H $t $t",
    "EVALSHA $1 3 $L $Q $F $H $t $t", "EVALSHA $1 3 $L $Q $F $H $N $t",
    "EVALSHA $1 3 $L $Q $F $H 0 $t", "EVALSHA $1 3 $L $Q $F $H $t $N",
    "EVALSHA $1 4 $L $Q $F $O $H $t $t $o", "EVALSHA $1 4 $L $Q $F $O $H $t $t $o",
    "EVALSHA $1 4 $L $Q $F $O $H $t $t $o", "EVALSHA $1 4 $L $Q $F $O $H $t $t $o",
    "EVALSHA $2 4 $L $Q $F $W $H 0", "EVALSHA $2 4 $L $Q $F $W $H 0",
    "EVALSHA $2 4 $L $Q $F $W $H $t", "EVALSHA $2 4 $L $Q $F $W $H $N",
    "EVALSHA $2 5 $L $Q $F $W $O $H 0 $o", "EVALSHA $2 5 $L $Q $F $W $O $H 0 $o",
    "EVALSHA $2 5 $L $Q $F $W $O $H $t $o", "EVALSHA $3 3 $L $F $W $H $t $t $_",
    "EVALSHA $3 3 $L $F $W $H $t $t $_", "EVALSHA $3 3 $L $F $W $H $N $t $_",
    "EVALSHA $3 3 $L $F $W $H 0 $t $_", "EVALSHA $3 4 $L $F $W $O $H $t $t $o",
    "EVALSHA $3 4 $L $F $W $O $H $t $t $o",
    "EVALSHA $3 7 $L $F $W $L $F $W $O $H $t $t $_ $H $t $t $o",
    "EVALSHA $7 2 $L $F $H $t", "EVALSHA $7 2 $L $F $H $t", "EVALSHA $7 2 $L $F $H $N",
    "EVALSHA $7 4 $L $F $L $F $H $t $H $t",
    "EVALSHA $4 3 $L $F $W $v $B $t", "EVALSHA $4 3 $L $F $W $v 0 $t", "EVALSHA $4 3 $L $F $W $v 0 $N",
    "EVALSHA $5 5 $L $Q $F $W $O $H $B $t", "EVALSHA $5 5 $L $Q $F $W $O $o $B $t",
    "EVALSHA $5 5 $L $Q $F $W $O $H 0 $t", "EVALSHA $6 3 $L $F $O 16", "EVALSHA $6 3 $L $F $O 2",
    "SET $F $B PX $t", "SET $F $B", "SET $L $o", "DEL $F", "HGET $W #broken", "HGET $W #revoked",
    "GET $F", "PTTL $F", "DEL $W", "PTTL $W", "PTTL $O", "ZCARD $O", "ZSCORE $O $H", "DEL $O",
    "EVALSHA $v 1 $L $H", "SET $L $H NX PX $t", "DEL $L", "PERSIST $L", "PTTL $L", "GET $L",
    "SET $L $H", "SCRIPT FLUSH", "PTTL $Q",
};

static const char *const short_templates[] = {
    "SET %s v PX %d", "SET %s v PX %d", "EVALSHA $1 3 %s none F7 short %d 500000",
    "PEXPIRE %s %d", "PEXPIRE %s %d", "EVALSHA $2 4 none %s F7 W7 hold1 %d",
};

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
    static const char kinds[] = "shlzLLQQFFWWOO";
    int kind = key / 4;
    int number = kind >= 4 ? key % 8 : key % 4;
    (void)snprintf(name, 16, "%c%d", kinds[kind], number);
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
    else if (strchr("LQFWOq", kind) != NULL)
        add_lock(stream, kind);
    else if (strchr("tTAP", kind) != NULL)
        add_expiry(stream, kind);
    else if (strchr("123456", kind) != NULL)
        add_text(stream, hf__scripts[kind - '1'].sha1);
    else if (kind == 'H')
        add_number(stream, "hold", (int64_t)below(stream, 4));
    else if (kind == 'o')
        add_number(stream, "owner", (int64_t)below(stream, 2));
    else if (kind == 'B')
        add_number(stream, "", 5000000000000000 + (int64_t)below(stream, 2));
    else if (kind == 'g')
        add_pattern(stream);
    else if (kind == '_')
        add_text(stream, "");
    else if (kind == '!')
        add_number(stream, "!hold", (int64_t)below(stream, 4));
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
        if (template[0] == '$')
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
    if (below(stream, 5) < 2) {
        fill(stream, lock_templates[below(stream, COUNT(lock_templates))]);
        /* Flushing the scripts every few commands would leave little to run. */
        if (sim_is(stream->words[0], "SCRIPT") && below(stream, 8) > 0)
            fill(stream, "EVALSHA $3 3 $L $F $W $H $t $t $_");
        return;
    }
    fill(stream, templates[below(stream, COUNT(templates))]);
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
    size_t kind = below(stream, COUNT(short_templates) - 1);
    if (name[0] == 'Q')
        kind = COUNT(short_templates) - 1;
        /* The table's formats take exactly these two. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(template, sizeof(template), short_templates[kind], name,
                   (int)(5 + below(stream, 26)));
#pragma GCC diagnostic pop
    fill(stream, template);
}
