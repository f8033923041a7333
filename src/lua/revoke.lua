-- revoke: leaves a request for whoever holds the lock now, to be found with the next renewal, and
-- tells those that are subscribed.
--
-- KEYS 1 the lock, 2 its fence, 3 its notes, 4 its holders
-- ARGV 1 the request in words, 2 the fence that the lock has, as inspect said (so that a copy of
--      the request is not meant for anybody else; 0: there is none), 3 ms for which it is kept
-- -> 1 left, 0 another hold has it now, or nobody
local call = redis.call
-- include cut
-- include number
local held, kept = call('GET', KEYS[1]), call('GET', KEYS[2]) or ''
local fence = number_in(kept) > 0 and string.match(kept, '^%d+') or '0'
if not held or fence ~= ARGV[2] then
    return 0
end
local note = (fence ~= '0' and fence or '=' .. cut(held)) .. ':' .. ARGV[1] -- without a fence, by value
call('HSET', KEYS[3], '#revoked', note)
if call('PTTL', KEYS[3]) < tonumber(ARGV[3]) then
    call('PEXPIRE', KEYS[3], ARGV[3])
end
local holders = call('ZRANGE', KEYS[4], 0, 999)
holders[#holders + 1] = held
for i = 1, #holders do
    local client, number = string.match(holders[i], '^(%x+):(%d+)@')
    if client then
        redis.pcall('PUBLISH', 'hf:c:' .. client, 'r ' .. number .. ' ' .. note)
    end
end
if string.find(kept, '@', 1, true) then -- somebody watches
    redis.pcall('PUBLISH', 'hf:e:' .. KEYS[2], 'revoked ' .. fence .. ' 0 ' .. cut(held))
end
return 1
