-- value: compare-and-set.
--
-- KEYS 1 the value, a hash: value, version, by (which call wrote it). Without a value it is deleted,
--      and forgotten after a day; 2 marks of calls
-- ARGV 1 run id, 2 whether a copy may have come before; to write: 3 which call this is, 4 the version
--      that it must have, 0: there is none, 5 the new value; left out: delete
-- -> read: {version, value}, {0} none
--    write: {1, version}; {0, version} it has another one; {-1, version} the same, but a copy that
--    came before may have written, and others since
--
-- Versions grow with the clock, so that not even a server that has forgotten a value gives it an old
-- one. A late copy finds that another version is there. Only "there is none" comes again, whenever it
-- is deleted: so a call that makes a value is marked if a copy of it was lost.
local call = redis.call
local kept = call('HMGET', KEYS[1], 'version', 'by', 'value')
local last, by, value = tonumber(kept[1] or 0), kept[2], kept[3]
local version = value and last or 0
if not ARGV[3] then
    return value and {version, value} or {0}
end
local again, makes = ARGV[2] == '1', ARGV[4] == '0' and ARGV[5]
-- include write_marks
if by == ARGV[3] then
    if again and makes then
        mark(KEYS[2], ARGV[3])
    end
    return {1, last}
end
if version ~= tonumber(ARGV[4]) or (makes and call('HGET', KEYS[2], ARGV[3])) then
    return {again and -1 or 0, version}
end
local time = call('TIME')
local fresh = math.max(last + 1, time[1] * 1000000 + time[2])
-- First what cannot grow: a full server lets values be deleted.
if not ARGV[5] then
    call('HDEL', KEYS[1], 'value')
elseif by and not value then
    call('DEL', KEYS[1]) -- and with it the time at which it is forgotten
end
call('HSET', KEYS[1], 'version', string.format('%.0f', fresh), 'by', ARGV[3])
if not ARGV[5] then
    call('PEXPIRE', KEYS[1], 86400000)
else
    call('HSET', KEYS[1], 'value', ARGV[5])
end
if again and makes then
    mark(KEYS[2], ARGV[3])
end
return {1, fresh}
