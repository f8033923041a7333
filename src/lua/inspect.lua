-- inspect: who holds the lock. Changes nothing.
--
-- KEYS 1 the lock, 2 its fence, 3 its holders
-- ARGV 1 how many holders to list
-- -> {value or nil, remaining ms, fence or '', live holders, {value, remaining ms, ...}}
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local after_now = string.format('(%.0f', now)
local held = call('GET', KEYS[1])
local listed = call('ZREVRANGEBYSCORE', KEYS[3], '+inf', after_now, 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 2, #listed, 2 do
    listed[i] = tonumber(listed[i]) - now
end
return {held, call('PTTL', KEYS[1]), string.match(call('GET', KEYS[2]) or '', '^%d+') or '',
        call('ZCOUNT', KEYS[3], after_now, '+inf'), listed}
