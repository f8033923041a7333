-- observe: from now on, what happens to the lock is published on its channel, 'hf:e:' and the name of
-- its fence's key, as '<word> <fence> <lease ms> <value>' with the words
-- granted, released, waiting, revoked and broken; the fence is the highest that is reserved. For a
-- while: whoever watches repeats it.
--
-- KEYS 1 the lock, 2 its fence, 3 its notes
-- ARGV 1 ms for which it is to be so
-- -> 1
local call = redis.call
local time = call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local kept = call('GET', KEYS[2])
call('HSET', KEYS[3], '#watched', string.format('%.0f', ends))
if call('PTTL', KEYS[3]) < tonumber(ARGV[1]) then
    call('PEXPIRE', KEYS[3], ARGV[1])
end
if not kept then
    call('SET', KEYS[2], '0@', 'PX', ARGV[1])
else
    if not string.find(kept, '@', 1, true) then
        call('SET', KEYS[2], kept .. '@', 'KEEPTTL')
    end
    if call('PTTL', KEYS[2]) < tonumber(ARGV[1]) then -- also behind a hold that is not renewed
        call('PEXPIRE', KEYS[2], ARGV[1])
    end
end
return 1
