-- permissions: what the caller may not do. The server's own refusal does not say which command of a
-- script, or which of its keys, it is about.
--
-- ARGV 1 'commands': of the other scripts, with the lock 2; without those that they can do without,
--      and those that change something if all of them are denied: such a caller comes to look
--      'all': the same, with these
--      'keys': which of 2 and so on
-- -> what is denied of these; nothing if the server cannot tell (before 7.0, or by a lock that is
--    denied as a whole)
--
-- Redis 7.0 falls over when it is asked about a command without its arguments, so each has as many
-- as it needs.
local may, denied = redis.acl_check_cmd, {}

-- Whether a script may have the key, to read and to write: EVAL itself is allowed, or we were not
-- here.
local function is_open(key)
    return may('eval', '', '1', key)
end

local function missing(commands, key)
    local found = {}
    for i = 1, #commands do
        local words = {}
        for word in string.gmatch(commands[i], '%S+') do
            words[#words + 1] = word == 'key' and key or word
        end
        if not may(unpack(words)) then
            found[#found + 1] = words[1]
        end
    end
    return found
end

local function add(found)
    for i = 1, #found do
        denied[#denied + 1] = found[i]
    end
end

if may and ARGV[1] ~= 'keys' then
    local changes = {'DEL key', 'HDEL key f', 'HSET key f v', 'PEXPIRE key 1', 'PEXPIREAT key 1',
                     'SET key v', 'ZADD key 1 m', 'ZREM key m', 'ZREMRANGEBYSCORE key 1 1'}
    if is_open(ARGV[2]) then
        add(missing({'GET key', 'EXISTS key', 'HGET key f', 'HKEYS key', 'HLEN key', 'MGET key',
                     'PTTL key', 'ZCARD key', 'ZCOUNT key 1 1', 'ZRANGE key 0 0',
                     'ZRANGEBYSCORE key 1 1', 'ZREVRANGE key 0 0', 'ZREVRANGEBYSCORE key 1 1',
                     'ZSCORE key m'}, ARGV[2]))
        local found = missing(changes, ARGV[2])
        add((#found < #changes or ARGV[1] == 'all') and found or {})
    end
    if not may('TIME') then
        denied[#denied + 1] = 'TIME'
    end
end
for i = 2, may and ARGV[1] == 'keys' and #ARGV or 0 do
    if not is_open(ARGV[i]) then
        denied[#denied + 1] = ARGV[i]
    end
end
return denied
