-- acquire: takes the lock if it is free. Safe to repeat: a copy of a request that was granted
-- before is granted again, and a copy that arrives after its hold has ended takes nothing.
--
-- KEYS 1 the lock, 2 its queue (here only for tombstones)
-- ARGV 1 value of this hold, 2 lease in ms
-- -> remaining ms            granted (a bare number, because it is the common case and the cheapest)
--    -1                      this hold was ended before (tombstone)
--    {remaining ms, value}   busy: held with that value; remaining is -1 when it never expires
if redis.call('ZSCORE', KEYS[2], '!' .. ARGV[1]) then
    return -1
end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
    return tonumber(ARGV[2])
end
local held = redis.call('GET', KEYS[1])
local remaining = redis.call('PTTL', KEYS[1])
if held ~= ARGV[1] then
    return {remaining, held}
end
if remaining < 0 then -- somebody took the expiry away: a crash would leave it locked for ever
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    remaining = tonumber(ARGV[2])
end
return remaining
