-- renew: makes a hold last at least the given time from now on. Never shortens it: a late copy of
-- a shorter renewal must not take back what a longer one gave.
--
-- KEYS 1 the lock
-- ARGV 1 value of this hold, 2 lease in ms
-- -> remaining ms, or 0 if it is not ours any more
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
    return 0
end
local remaining = redis.call('PTTL', KEYS[1])
if remaining < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return tonumber(ARGV[2])
end
return remaining
