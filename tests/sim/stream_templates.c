/* SPDX-License-Identifier: MIT */
/* The commands that are compared between the model and a real server. stream.c says what the words
 * that begin with '$' stand for. */
#include "stream.h"

/* One word a line would hide the tables. */
/* clang-format off */
const char *const stream_templates[] = {
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
    "HMGET $k $m", "HSCAN $h 0", "HSCAN $k 0 COUNT 1000", "HSCAN $h 0 MATCH $g", "HSCAN $h $m",
    "HSCAN $h 0 COUNT 0", "LPUSH $l $v", "LPUSH $l $m $m $m", "RPUSH $l $v", "RPUSH $l $m $m",
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
    "ZREMRANGEBYRANK $z $n $n", "ZREVRANGE $z 0 0 WITHSCORES", "ZREVRANGE $z $i $i",
    "ZREVRANGE $z $n $n", "ZREVRANGE $z 0 -1 LIMIT 0 1", "ZREVRANGE $z 0 -1 REV", "ZREVRANGE $k 0 -1",
    "HKEYS $h", "HKEYS $k", "HVALS $h", "HVALS $k", "RENAME $k $k", "RENAME $h $h", "RENAME $s $k",
    "UNLINK $k $k", "UNLINK $l", "ZRANK $z $m", "ZCOUNT $z $b $b", "ZPOPMIN $z", "ZPOPMIN $z $i",
    "ZPOPMIN $z $n", "ZSCORE $q $!", "ZSCORE $q $!", "ZCARD $q", "ZREM $q $!", "PTTL $q", "DEL $q",
    "ZREVRANGEBYSCORE $z $b $b", "ZREVRANGEBYSCORE $z $b $b WITHSCORES",
    "ZREVRANGEBYSCORE $z +inf $b WITHSCORES LIMIT $i $i", "ZREVRANGEBYSCORE $z $b $b LIMIT $n $i",
    "ZCOUNT $z $b +inf", "SCAN 0 COUNT 1000", "SCAN 0 MATCH $g COUNT 1000",
    "SCAN 0 COUNT 1000 MATCH $g", "SCAN x COUNT 1000", "SCAN 0 COUNT $N", "SCAN 0 COUNT 0",
    "SCAN 0 $m 1000", "TIME", "PING", "PING $v", "ECHO $v", "DBSIZE", "PUBLISH $c $v", "PUBLISH $c $v",
    "PUBSUB NUMSUB", "PUBSUB NUMSUB $c $c", "PUBSUB NUMSUB $c", "PUBSUB $m",
    "SCRIPT EXISTS $1 $2 $v", "SCRIPT LOAD $e", "SCRIPT $m", "SCRIPT FLUSH $m", "AUTH $v",
    "AUTH default $v", "AUTH $m $v", "SELECT 0", "SELECT 16", "SELECT $N", "CLIENT SETNAME $m",
    "CLIENT ID", "CLIENT $m", "INFO server", "INFO replication", "INFO memory", "INFO persistence", "CONFIG GET nothing-like-this",
    "CONFIG $m", "$m $v", "NOSUCHCOMMAND $v $m", "EVAL $e 0", "EVAL $e 1 $k $v",
    "EVAL $e 2 $s $z $m $i", "EVAL $e $n $k", "EVAL $e -1 $k", "EVAL $e 3 $h $l $z $m $v $f",
    "EVAL $e 1 $s $i $m",
};

/* Drawn two times out of five, since these are what the library lives on. */
const char *const stream_lock_templates[] = {
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 0", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 0",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $j", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $j",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $j", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $j",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $j", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 $j",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 $j $_ $o", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 $j $_ $o",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 0 $t $o", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 0 $t $o",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $N $t 1 0", "EVALSHA $1 6 $L $Q $F $W $O $M $H 0 $t 1 $j",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $N 1 $j", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t x $j",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 $N", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $n",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t", "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t", "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H $t $t", "EVALSHA $2 6 $L $Q $F $W $O $M $H $N $t",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t $o", "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t $o",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H $t $t $o", "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $N",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t",
    "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t $r $j $t", "EVALSHA $1 6 $L $Q $F $W $O $M $H $t $t 1 $j $_ $_",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H", "EVALSHA $2 6 $L $Q $F $W $O $M $H",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t $_ $_ $B 0", "EVALSHA $2 6 $L $Q $F $W $O $M $H 0 $t $_ $_ 0 3",
    "EVALSHA $2 6 $L $Q $F $W $O $M $H $t $t $_ $_ $B 2", "SET $M $B PX $t", "SET $M x", "GET $M", "PTTL $M", "DEL $M",
    "EVALSHA $3 3 $L $F $W $H $t $t $_ 0",
    "EVALSHA $3 3 $L $F $W $H $t $t $_ $B", "EVALSHA $3 3 $L $F $W $H $N $t $_ 0",
    "EVALSHA $3 3 $L $F $W $H 0 $t $_ 0", "EVALSHA $3 4 $L $F $W $O $H $t $t $o 0",
    "EVALSHA $3 4 $L $F $W $O $H $t $t $o $B",
    "EVALSHA $3 7 $L $F $W $L $F $W $O $H $t $t $_ 1 $H $t $t $o 0",
    "EVALSHA $7 2 $L $W $H $t", "EVALSHA $7 2 $L $W $H $t", "EVALSHA $7 2 $L $W $H $N",
    "EVALSHA $7 4 $L $L $W $W $H $H $t", "EVALSHA $7 4 $L $L $W $W $H $H $t $t",
    "EVALSHA $8 3 $L $F $W $t", "EVALSHA $8 3 $L $F $W $N",
    "EVALSHA $4 4 $L $F $W $O $v $B $t", "EVALSHA $4 4 $L $F $W $O $v 0 $t",
    "EVALSHA $4 4 $L $F $W $O $v 0 $N", "EVALSHA $5 6 $L $Q $F $W $O $M $H $B $t",
    "EVALSHA $5 6 $L $Q $F $W $O $M $o $B $t", "EVALSHA $5 6 $L $Q $F $W $O $M $H 0 $t",
    "EVALSHA $6 5 $L $F $O $Q $W 16 32", "EVALSHA $6 5 $L $F $O $Q $W 2 1",
    "EVALSHA $6 5 $L $F $O $Q $W 16 32",
    "SET $F $B PX $t", "SET $F $B", "SET $L $o", "DEL $F", "HGET $W #broken", "HGET $W #revoked",
    "GET $F", "PTTL $F", "DEL $W", "PTTL $W", "PTTL $O", "ZCARD $O", "ZSCORE $O $H", "DEL $O",
    "EVALSHA $v 1 $L $H", "SET $L $H NX PX $t", "DEL $L", "DEL $L", "PERSIST $L", "PTTL $L", "GET $L",
    "SET $L $H", "SCRIPT FLUSH", "PTTL $Q", "HGET $W $H", "HGET $W $H", "HDEL $W $H", "HLEN $W",
    "ZSCORE $Q $H", "ZREM $Q $H", "ZCOUNT $Q 0 +inf", "ZRANGEBYSCORE $Q 0 +inf WITHSCORES",
    "HSET $W $H $d", "HSET $W $H nonsense", "ZREVRANGE $Q 0 0", "PUBSUB NUMSUB $C", "PUBLISH $C $v",
};

#define ITEM "4 $I $R $J $Z "

/* Ids are far ahead of the clock, and reservations, and what is remembered, last for long or not at
 * all: nothing hangs on the moment between the two clocks. */
const char *const stream_store_templates[] = {
    "EVALSHA $*ids 1 $D $X 0 0 5 $i $E 0", "EVALSHA $*ids 1 $D $X 0 0 5 100 $E $i",
    "EVALSHA $*ids 1 $D $X 1 0 5 1 $E 100", "EVALSHA $*ids 1 $D $X 0 0 0 4294967290 $E 0",
    "EVALSHA $*ids 1 $D $X 0 7 5 1 $E 0", "EVALSHA $*ids 1 $D $X 0 5000000000 5 1 $E 0",
    "EVALSHA $*ids 1 $D $X 0 0 $N 1 $E 0", "EVALSHA $*ids 1 $D $X 0 0 5 1 2147483640 0",
    "EVALSHA $*ids_vote 1 $D $X 0 0 $B", "EVALSHA $*ids_vote 1 $D $X 0 0 $B $E 100 0",
    "EVALSHA $*ids_vote 1 $D $X 0 7 $B", "EVALSHA $*ids_vote 1 $D $X 0 0 1 $E 7", "EXISTS $D", "DEL $D",
    "SET $D $v",
    "EVALSHA $*stock_set " ITEM "$X 0 100 $Y 3 0 $t", "EVALSHA $*stock_set " ITEM "$X 0 20 $Y 0 0 0",
    "EVALSHA $*stock_set " ITEM "$X 1 7 $Y -1 $t 0", "EVALSHA $*stock_set " ITEM "$X 1 5 $Y 0 0 $t $_",
    "EVALSHA $*stock_set " ITEM "$X 0 50 $Y 9 0 0 $Y", "EVALSHA $*stock_set " ITEM "$X 0 50 $Y 0 0 0 $Y",
    "EVALSHA $*stock_set " ITEM "$X 0 $N $Y 0 0 0",
    "EVALSHA $*stock_take " ITEM "$X 0 t 1 $Y 0 0 $K", "EVALSHA $*stock_take " ITEM "$X 0 t 2 $Y 1 0 $K",
    "EVALSHA $*stock_take " ITEM "$X 1 t 3 $Y 0 0 $_", "EVALSHA $*stock_take " ITEM "$X 0 t 30 $Y 1 0 $K",
    "EVALSHA $*stock_take " ITEM "$X 0 r 1 $Y 0 $t $K", "EVALSHA $*stock_take " ITEM "$X 0 r 1 $Y 0 0 $K",
    "EVALSHA $*stock_take " ITEM "$X 0 r 2 $Y 1 0 $_", "EVALSHA $*stock_take " ITEM "$X 1 r 4 $Y 0 0 $K",
    "EVALSHA $*stock_take " ITEM "$X 0 r $i $Y 0 0 $K", "EVALSHA $*stock_take " ITEM "$X 0 t $N $Y 0 0 $K",
    "EVALSHA $*stock_settle " ITEM "$X 0 c $Y", "EVALSHA $*stock_settle " ITEM "$X 0 c $Y",
    "EVALSHA $*stock_settle " ITEM "$X 0 x $Y", "EVALSHA $*stock_settle " ITEM "$X 0 x $Y",
    "EVALSHA $*stock_put " ITEM "$X 0 p 1 $Y 0 1000 $K", "EVALSHA $*stock_put " ITEM "$X 1 p 2 $Y 1 1000 $_",
    "EVALSHA $*stock_put " ITEM "$X 0 n 5 $Y 0 120 $_", "EVALSHA $*stock_put " ITEM "$X 0 n 5 $Y 0 1 $_",
    "EVALSHA $*stock_look " ITEM "$X 0", "EVALSHA $*stock_look " ITEM "$X 0 count 0 0",
    "EVALSHA $*stock_look " ITEM "$X 0 count 0 0", "EVALSHA $*stock_look " ITEM "$X 0 count 1 -1",
    "EVALSHA $*stock_look " ITEM "$X 0 count -1 0", "EVALSHA $*stock_delete " ITEM "$X 0 $Y 0",
    "EVALSHA $*stock_delete " ITEM "$X 0 $Y 1", "PTTL $R", "PTTL $J", "HGETALL $I", "HGETALL $I", "HGET $R $Y", "HGET $J $Y",
    "HLEN $R", "HLEN $J", "ZCARD $Z", "ZREM $Z $Y", "HDEL $R $Y", "HSET $R $Y $v", "DEL $I",
    "EVALSHA $*value 2 $V $h $X 0", "EVALSHA $*value 2 $V $h $X 0 $Y 0 $v", "EVALSHA $*value 2 $V $h $X 0 $Y $B $v",
    "EVALSHA $*value 2 $V $h $X 1 $Y $B $v", "EVALSHA $*value 2 $V $h $X 0 $Y $B", "HSET $V version $B by x",
    "HSET $V version $B by x value $v", "HGETALL $V", "DEL $V",
    "EVALSHA $*value 2 $V $h $X 1 $Y $B", "EVALSHA $*value 2 $V $h $X 1 $Y 0 $v",
    "EVALSHA $*write_held 5 $L $O $h $s $k $X 0 $Y $H $_ s $v 0 d $_ 0",
    "EVALSHA $*write_held 5 $L $O $h $s $s $X 0 $Y $H $_ s $v $t s $v 0",
    "EVALSHA $*write_held 4 $L $O $h $s $X 1 $Y $H $_ s $v $t", "EVALSHA $*write_held 4 $L $O $h $s $X 1 $Y $H $o s $v $t",
    "EVALSHA $*write_held 4 $L $O $h $s $X 0 $Y $H $o d $_ 0", "HDEL $h $Y",
    "EVALSHA $*write_fenced 4 $G $h $s $k $X 0 $Y $B s $v 0 d $_ 0", "EVALSHA $*write_fenced 3 $G $h $s $X 0 $Y $B s $v $t",
    "EVALSHA $*write_fenced 3 $G $h $s $X 1 $Y $B s $v $t", "EVALSHA $*write_fenced 3 $G $h $s $X 1 $Y 1 s $v 0",
    "EVALSHA $*write_fenced 3 $G $h $s $X 0 $Y 1 s $v 0", "GET $G", "DEL $G",
};

const char *const stream_short_templates[] = {
    "SET %s v PX %d", "SET %s v PX %d", "EVALSHA $1 6 %s none F7 none none M7 short %d 500000 1 0",
    "PEXPIRE %s %d", "PEXPIRE %s %d", "EVALSHA $2 6 none %s F7 W7 O7 M7 hold1 %d 500000",
};
/* clang-format on */

const size_t stream_template_count = sizeof(stream_templates) / sizeof(stream_templates[0]);
const size_t stream_lock_template_count =
    sizeof(stream_lock_templates) / sizeof(stream_lock_templates[0]);
const size_t stream_store_template_count =
    sizeof(stream_store_templates) / sizeof(stream_store_templates[0]);
const size_t stream_short_template_count =
    sizeof(stream_short_templates) / sizeof(stream_short_templates[0]);
