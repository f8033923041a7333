-- release: ends a hold, also one that was perhaps never granted. Deletes the lock only if it is
-- held with this hold's value.
--
-- KEYS 1 the lock
-- ARGV 1 value of this hold
-- and, if a copy of its acquire may still be on the way:
-- KEYS 2 the lock's queue
-- ARGV 2 ms for which such a copy must be turned away. A tombstone '!value' with the score
--      -(expiry in server ms) does that.
-- -> 1 released, 0 it was not ours
--
-- A server at its memory limit refuses writes that may grow, except after one that may not (DEL,
-- ZREMRANGEBYSCORE): so these come first, and a release succeeds there too.
local released = 0
if redis.call('GET', KEYS[1]) == ARGV[1] then
    released = redis.call('DEL', KEYS[1])
end
if ARGV[2] then
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local expiry = now + tonumber(ARGV[2])
    redis.call('ZREMRANGEBYSCORE', KEYS[2], string.format('(%.0f', -now), '(0')
    redis.call('ZADD', KEYS[2], string.format('%.0f', -expiry), '!' .. ARGV[1])
    if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[2]) then
        redis.call('PEXPIRE', KEYS[2], ARGV[2])
    end
end
return released
