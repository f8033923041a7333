-- value: compare-and-set.
--
-- KEYS 1 the value, a hash: value, version, by (which call wrote it); without a value it is deleted
-- ARGV 1 run id, 2 whether a copy may have come before; to write: 3 which call this is, 4 the version
--      that it must have, 0: there is none, 5 the new value; left out: delete
-- -> read: {version, value}, {0} none; write: {1, version}, {0, version} it has another one
--
-- Versions grow with the clock, so that not even a server that has forgotten a value gives it an old
-- one.
local call = redis.call
local kept = call('HMGET', KEYS[1], 'version', 'by', 'value')
local last, by, value = tonumber(kept[1] or 0), kept[2], kept[3]
local version = value and last or 0
if not ARGV[3] then
    return value and {version, value} or {0}
end
if by == ARGV[3] then
    return {1, last}
end
if version ~= tonumber(ARGV[4]) then
    return {0, version}
end
local time = call('TIME')
local fresh = math.max(last + 1, time[1] * 1000000 + time[2])
call('HSET', KEYS[1], 'version', string.format('%.0f', fresh), 'by', ARGV[3])
if ARGV[5] then
    call('HSET', KEYS[1], 'value', ARGV[5])
else
    call('HDEL', KEYS[1], 'value')
end
return {1, fresh}
