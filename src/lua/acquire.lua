-- acquire: takes the lock if it is free, or joins those who hold it for the same owner. Safe to
-- repeat: a copy of a request that was granted before is granted again, with the same fence, and a
-- copy that arrives after its hold has ended takes nothing.
--
-- KEYS 1 the lock, 2 its queue (here only for tombstones), 3 its fence; with an owner 4 its holders
-- ARGV 1 value of this hold, 2 lease in ms, 3 ms for which the fence is kept, 4 owner, if any
-- -> {fence, remaining ms}       granted; the remaining time is this hold's own
--    {0, remaining ms, value}    busy: held with that value; -1 ms when it never expires
--    {-1}                        this hold was ended before (tombstone)
--
-- The fence is the last one + 1 or the time in microseconds, whichever is more: it grows even if
-- the last one was lost, and even if the clock was set back, unless both happen. A '+' behind it
-- says that the queue must be looked at. The common case, a free lock and nothing of the kind, is
-- three commands; everything else is found out behind them and put right.
local call = redis.call
local value, owner = ARGV[1], ARGV[4]
local time = call('TIME')
local fence = time[1] * 1000000 + time[2]
local taken = call('SET', KEYS[1], owner or value, 'NX', 'PX', ARGV[2])
local kept
if taken then
    kept = redis.pcall('SET', KEYS[3], fence, 'PXAT', math.floor(fence / 1000) + ARGV[3], 'GET')
    local last = tonumber(kept)
    if last and last < fence and not owner then
        return {fence, tonumber(ARGV[2])}
    end
end

local lease = tonumber(ARGV[2])
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function number_in(text)
    return tonumber(string.match(text or '', '^%d+') or 0)
end

local function mint(last)
    local mark = call('ZCARD', KEYS[2]) > 0 and '+' or ''
    fence = math.max(fence, last + 1)
    call('SET', KEYS[3], string.format('%.0f%s', fence, mark),
         'PXAT', math.floor(fence / 1000) + ARGV[3])
    return fence
end

local function take()
    local last = tonumber(kept)
    if not last or last >= fence then
        mint(number_in(kept))
        if call('ZSCORE', KEYS[2], '!' .. value) then
            call('DEL', KEYS[1])
            return {-1}
        end
    end
    if owner then
        call('DEL', KEYS[4])
        call('ZADD', KEYS[4], now + lease, value)
        call('PEXPIRE', KEYS[4], lease)
    end
    return {fence, lease}
end

-- Joins those who hold it for the owner. False: it is held by somebody else who has that name.
local function join()
    if call('ZCOUNT', KEYS[4], string.format('(%.0f', now), '+inf') == 0 then
        return false
    end
    call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now)
    call('ZADD', KEYS[4], now + lease, value)
    local latest = call('ZRANGE', KEYS[4], -1, -1, 'WITHSCORES')[2]
    call('PEXPIREAT', KEYS[1], latest)
    call('PEXPIREAT', KEYS[4], latest)
    if call('PTTL', KEYS[3]) < tonumber(ARGV[3]) then
        call('PEXPIRE', KEYS[3], ARGV[3])
    end
    return true
end

if taken then
    -- A script that fails does not take back what it has done: so that is done here.
    local fine, answer = true, kept
    if type(kept) ~= 'table' then
        fine, answer = pcall(take)
    end
    if not fine or answer.err then
        call('DEL', KEYS[1])
    end
    return (fine or type(answer) == 'table') and answer or {err = answer}
end

local held = call('GET', KEYS[1])
local remaining = call('PTTL', KEYS[1])
if held ~= (owner or value) then
    return {0, remaining, held}
end
if owner then
    local own = tonumber(call('ZSCORE', KEYS[4], value) or 0)
    if own > now then
        remaining = own - now
    elseif call('ZSCORE', KEYS[2], '!' .. value) then
        return {-1}
    elseif join() then
        remaining = lease
    else
        return {0, remaining, held}
    end
elseif remaining < 0 then -- somebody took the expiry away: a crash would lock it for ever
    call('PEXPIRE', KEYS[1], lease)
    remaining = lease
end
local last = number_in(call('GET', KEYS[3]))
return {last > 0 and last or mint(last), remaining}
