-- revoke: leaves a request for whoever holds the lock now, to be found with the next renewal.
--
-- KEYS 1 the lock, 2 its fence, 3 its notes
-- ARGV 1 the request in words, 2 the fence that the lock has, as inspect said (so that a copy of
--      the request is not meant for anybody else; 0: there is none), 3 ms for which it is kept
-- -> 1 left, 0 another hold has it now, or nobody
local call = redis.call
local held, kept = call('GET', KEYS[1]), call('GET', KEYS[2]) or ''
local fence = string.match(kept, '^%d+') or '0'
if not held or fence ~= ARGV[2] then
    return 0
end
local who = fence ~= '0' and fence or '=' .. held -- without a fence, by the lock's value
call('HSET', KEYS[3], '#revoked', who .. ':' .. ARGV[1])
if fence ~= '0' and not string.find(kept, '!', 1, true) then
    call('SET', KEYS[2], kept .. '!', 'KEEPTTL') -- a mark: look at the notes
end
if call('PTTL', KEYS[3]) < tonumber(ARGV[3]) then
    call('PEXPIRE', KEYS[3], ARGV[3])
end
return 1
