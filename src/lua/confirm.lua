-- confirm: writes down once more that a lock is held, as it is, so that the WAIT which follows on the
-- same connection covers the grant: WAIT asks about what its own connection has written, and the
-- grant may have been made on another one, by a release even. Always a write if it is ours.
--
-- KEYS 1 the lock; with an owner also 2 its holders
-- ARGV 1 value of this hold, 2 lease in ms, 3 owner, if any
-- -> 1 it is ours, 0 it is not ours any more
local call = redis.call
local value, lease, owner = ARGV[1], tonumber(ARGV[2]), ARGV[3]
if owner then
    local time = call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    lease = tonumber(call('ZSCORE', KEYS[2], value) or 0) - now
end
if lease <= 0 or call('GET', KEYS[1]) ~= (owner or value) then
    return 0
end
return call('PEXPIRE', KEYS[1], math.max(call('PTTL', KEYS[1]), lease))
