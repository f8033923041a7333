-- inspect: who holds the lock and who waits for it. Changes nothing.
--
-- KEYS 1 the lock, 2 its fence, 3 its holders, 4 its queue, 5 its notes
-- ARGV 1 how many holders to list, 2 how many waiters
-- -> {value or nil, remaining ms, fence or '', live holders, {value, remaining ms, ...},
--     waiters, {value, ms since it began to wait, ...}}
local call = redis.call
-- include cut
-- include number
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local after_now = string.format('(%.0f', now)
local held, kept = call('GET', KEYS[1]), call('GET', KEYS[2])
local holders = call('ZREVRANGEBYSCORE', KEYS[3], '+inf', after_now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 2, #holders, 2 do
    holders[i - 1] = cut(holders[i - 1])
    holders[i] = tonumber(holders[i]) - now
end
local waiters = {}
for _, value in ipairs(call('ZRANGEBYSCORE', KEYS[4], 0, '+inf', 'LIMIT', 0, ARGV[2])) do
    local record = call('HGET', KEYS[5], value) or ''
    local since = string.match(record, '^%d+ %d+ %d+ %d+ (%d+) ')
    waiters[#waiters + 1] = cut(value)
    waiters[#waiters + 1] = since and now - since or 0
end
return {held and cut(held), call('PTTL', KEYS[1]),
        number_in(kept) > 0 and string.match(kept, '^%d+') or '',
        call('ZCOUNT', KEYS[3], after_now, '+inf'), holders,
        call('ZCOUNT', KEYS[4], 0, '+inf'), waiters}
