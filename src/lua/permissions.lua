-- permissions: what the caller may not do. The server's own refusal does not say which command of a
-- script, or which of its keys, it is about.
--
-- ARGV 1 'commands': of the other scripts, with the lock 2; those are left out that they can do
--      without, and those of which it cannot be told because no such command is allowed there
--      'keys': which of 2 and so on
-- -> what is denied of these; nothing if the server cannot tell (before 7.0)
--
-- Redis 7.0 falls over when it is asked about a command without its arguments, so each has as many
-- as it needs.
local may, denied = redis.acl_check_cmd, {}

local function ask(commands, key)
    local missing = {}
    for i = 1, #commands do
        local words = {}
        for word in string.gmatch(commands[i], '%S+') do
            words[#words + 1] = word == 'key' and key or word
        end
        if not may(unpack(words)) then
            missing[#missing + 1] = words[1]
        end
    end
    for i = 1, #missing < #commands and #missing or 0 do
        denied[#denied + 1] = missing[i]
    end
end

if may and ARGV[1] == 'commands' then
    ask({'GET key', 'EXISTS key', 'HGET key f', 'HKEYS key', 'HLEN key', 'MGET key', 'PTTL key',
         'ZCARD key', 'ZCOUNT key 1 1', 'ZRANGE key 0 0', 'ZRANGEBYSCORE key 1 1',
         'ZREVRANGE key 0 0', 'ZREVRANGEBYSCORE key 1 1', 'ZSCORE key m'}, ARGV[2])
    ask({'DEL key', 'HDEL key f', 'HSET key f v', 'PEXPIRE key 1', 'PEXPIREAT key 1', 'SET key v',
         'ZADD key 1 m', 'ZREM key m', 'ZREMRANGEBYSCORE key 1 1'}, ARGV[2])
    if not may('TIME') then
        denied[#denied + 1] = 'TIME'
    end
end
for i = 2, may and ARGV[1] == 'keys' and #ARGV or 0 do
    if not may('GET', ARGV[i]) or not may('DEL', ARGV[i]) then
        denied[#denied + 1] = ARGV[i]
    end
end
return denied
