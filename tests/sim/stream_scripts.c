/* SPDX-License-Identifier: MIT */
/* Scripts whose replies are compared between the model and a real server: every conversion between
 * Lua and Redis, errors and their places, what a sandbox forbids. */
#include "stream.h"

/* One word a line would hide the table. */
/* clang-format off */
const char *const stream_scripts[] = {
    "return 1", "return -3.99", "return 3.99", "return '3.99'", "return true", "return false",
    "return nil", "return", "return {}", "return {1, 2, nil, 4}",
    "return {1, {2, {3, 'x'}}, false}", "return {true, false, 'a', 1.5}", "return {ok = 'fine'}",
    "return {err = 'BAD thing'}", "return {err = 'bare'}",
    "return {1, {ok = 'in'}, {err = 'ERR inner'}}", "return {a = 1, 'x'}", "return KEYS",
    "return ARGV", "return {KEYS[1], ARGV[1]}", "return {#KEYS, #ARGV}",
    "return redis.call('GET', KEYS[1])", "return redis.pcall('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], ARGV[1])", "return redis.call('SET', KEYS[1], 12.5)",
    "return redis.call('SET', KEYS[1], 10)", "return redis.call('SET', KEYS[1], 1/3)",
    "return redis.call('SET', KEYS[1], 2^53)", "return redis.call('SET', KEYS[1], 1e100)",
    "local r = redis.call('SET', KEYS[1], 'x') return {r.ok, type(r)}",
    "return redis.call('INCR', KEYS[1])",
    "local r = redis.pcall('INCR', KEYS[1]) if type(r) == 'table' then return r.err end "
    "return r",
    "local ok, e = pcall(redis.call, 'INCR', KEYS[1]) return {tostring(ok), tostring(e)}",
    "local ok, e = pcall(error, {err = 'MY own'}) return {tostring(ok), tostring(e)}",
    "local ok, e = pcall(function() error('x', 0) end) return {tostring(ok), tostring(e)}",
    "local ok, e = pcall(function() return nothing end) return {tostring(ok), e}",
    "return redis.call('NOSUCH', 1)", "return redis.call('GET')", "return redis.pcall('GET')",
    "return redis.call()", "return redis.pcall()", "return redis.call('GET', {})",
    "return redis.pcall('GET', nil)", "return redis.call('GET', true)",
    "return redis.call('SUBSCRIBE', 'x')", "return redis.pcall('EVAL', 'return 1', 0)",
    "return redis.call('PING')", "return redis.call('ECHO', ARGV[1])",
    "return redis.error_reply('MY text')", "return redis.error_reply('word')",
    "return redis.error_reply('-DASH text')", "return redis.error_reply(1)",
    "return redis.status_reply('FINE')", "return redis.status_reply()", "return redis.sha1hex('')",
    "return redis.sha1hex(ARGV[1] or 'abc')", "return redis.sha1hex()",
    "return redis.log(redis.LOG_DEBUG, 'nothing')", "x = 1", "return x", "return _G.x",
    "_G.x = 1 return 1", "rawset(_G, 'x', 1) return 1", "redis.call = 1", "string.x = 1",
    "setmetatable(_G, {}) return 1", "KEYS[1] = 'mine' return KEYS[1]", "return print",
    "return require", "return os", "return io", "return type(loadstring)",
    "return loadstring('return 7')()", "return loadstring('y = 7')()", "error('my words')",
    "error({err = 'MY table'})", "error()", "error('a\\nb')",
    "return {ok = 'a\\r\\nb'}", "return {err = 'A\\r\\nb'}", "syntax error here", "return (",
    "\n\nreturn redis.call('INCRBY', KEYS[1], 'x')", "local a = nil\nreturn a.b",
    "local function f()\n  return redis.call('LPUSH', KEYS[1])\nend\nreturn f()",
    "local function f()\n  error('deep')\nend\nf()", "return 1 + {}", "return #nil",
    "return tostring(1e15) .. ' ' .. tostring(0.1) .. ' ' .. tostring(2^53)",
    "return string.format('%.0f %5.2f %d %s', 2^53, 1.005, 7, 'x')", "return math.floor(-1.5)",
    "return tostring(math.random())", "return math.random(100)", "return math.random(5, 9)",
    "math.randomseed(7) return math.random(1000000)", "return tonumber('0x10')",
    "return tonumber('  12  ')", "return 9007199254740993", "return -9007199254740993",
    "return select('#', unpack(ARGV))", "return table.concat(ARGV, ',')", "return _VERSION",
    "return redis.call('HGETALL', KEYS[1])", "return redis.call('HMGET', KEYS[1], 'a', 'm1')",
    "return redis.call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES')",
    "return redis.call('ZADD', KEYS[2], ARGV[2], ARGV[1])",
    "return redis.call('ZADD', KEYS[2], 2^52 + 0.5, 'big')",
    "return redis.call('ZSCORE', KEYS[2], ARGV[1])",
    "return type(redis.call('ZSCORE', 'none', 'x'))", "return type(redis.call('LPOP', 'none', 1))",
    "return #redis.call('LRANGE', KEYS[2], 0, -1)",
    "local r = {} for i = 1, 40 do r[i] = 'm' .. i end return redis.call('RPUSH', 'none', "
    "unpack(r)) + redis.call('DEL', 'none')",
    "redis.call('SET', KEYS[1], 'kept') return redis.call('INCR', KEYS[1])",
    "return redis.call('PUBSUB', 'NUMSUB', 'c1', 'c2')",
    "return redis.pcall('PUBLISH', 'c1', 'hi')", "return #redis.call('TIME')",
    "return redis.call('EXISTS', unpack(KEYS))", "return redis.call('TYPE', KEYS[1])",
    "return redis.call('TYPE', KEYS[1]).ok",
    "return tostring(redis.REDIS_VERSION_NUM) .. redis.REDIS_VERSION", "return redis.REPL_ALL",
    "local co = coroutine.wrap(function() coroutine.yield(redis.call('ECHO', 'in')) end) "
    "return co()",
    "return string.rep('ab', 3)", "return ('x'):upper()", "return {string.byte('A\\0B', 1, 3)}",
    "return next({})", "return tostring(nil)", "return type(getmetatable)", "return -0",
};
const size_t stream_script_count = sizeof(stream_scripts) / sizeof(stream_scripts[0]);
/* clang-format on */
