-- acquire: takes the lock if it is free and nobody waits, or joins those who hold it for the same
-- owner, or queues for it. Also the check of one who waits. Safe to repeat: a copy of a request that
-- was granted before is granted again, with the same fence; one that is queued keeps its place; and
-- a copy that arrives after its hold has ended takes nothing.
--
-- KEYS 1 the lock, 2 its queue, 3 its fence, 4 its notes, 5 its holders, 6 the mark of its slot,
--      which a quorum does not have
-- ARGV 1 value of this hold, 2 lease in ms, 3 ms for which fences and the slot's mark are kept, 4 how
--      many fences, 5 number of this copy, or 0: do not queue, or -1: queue, but no message can tell
--      of the grant, 6 ms for which the name keeps the fence if it has no marks, or '': as 3,
--      7 owner; '': none; not there: nor can another copy of this acquire be in the queue. What is
--      left out at the end is an hour, 1, 0 and ''
--      On a quorum also: 4 may be 0, for a copy of a hold, which has the fence below the proposed one,
--      8 the least fence that is proposed, 9 ticket: the place in the queue, which is the same at all
--      servers; 0: none, it does not queue
-- -> fence                       granted, for the lease that was asked for; a number of 16 digits, so
--                                that no other answer can be taken for it
--    {fence, remaining ms}       granted; the remaining time is this hold's own
--    {fence, remaining ms, 1}    and others wait
--    {0, remaining ms, value}    busy: held with that value (see cut); -1 ms when it never expires
--    {0, remaining ms, value, ticket}   the same on a quorum: later tickets than that are nobody's
--    {0, remaining ms, value, place, foreign}   the same, and queued at that place; foreign = 1: the
--                                holder does not use this library, and will not hand on
--    {-1}                        this hold was ended before (tombstone)
--
-- The fence is the time in microseconds, or one more than the last fence of this name, or one more
-- than the slot's mark, whichever is most: it grows even if the last one was lost, and even if the
-- clock was set back, unless both happen. A mark behind the name's fence says that there is more to
-- do. The common case, a free lock and nothing of the kind, is four commands; everything else is
-- found out behind them and put right. What costs time besides the commands is every function that
-- is made, every number that becomes text, and a table that becomes a reply: so what is common stands
-- first, and is answered with one number.
local call = redis.call
local value, owner, proposed = ARGV[1], ARGV[7] ~= '' and ARGV[7] or nil, ARGV[8]
local keep = ARGV[3] or '3600000'
local brief = ARGV[6] ~= '' and ARGV[6] or keep
local time = call('TIME')
local stamp = time[1] .. (#time[2] == 6 and time[2] or string.sub('00000' .. time[2], -6))
local clock, far = tonumber(stamp), false
if proposed and (tonumber(proposed) > clock or ARGV[4] == '0') then
    far = tonumber(proposed) > clock + 1000000 -- some clock is ahead: kept longer than others
    clock, stamp = tonumber(proposed), proposed
end
local taken = call('SET', KEYS[1], owner or value, 'NX', 'PX', ARGV[2])
local kept, marked
if taken then
    kept = redis.pcall('SET', KEYS[3], stamp, 'PX', brief, 'GET')
    marked = KEYS[6] and redis.pcall('SET', KEYS[6], stamp, 'PX', keep, 'GET') or ''
    -- Numbers that are as long as each other compare as texts.
    if (not kept and not ARGV[7] or kept and #kept == #stamp and kept < stamp)
        and (#marked == #stamp and marked < stamp or not KEYS[6])
        and (ARGV[4] or '1') == '1' and not owner and not far then
        return #stamp == 16 and clock or {clock, tonumber(ARGV[2])}
    end
end

local lease, range, n = tonumber(ARGV[2]), tonumber(ARGV[4] or 1), tonumber(ARGV[5] or 0)
local ticket = tonumber(ARGV[9] or 0)
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- include cut
-- include number
-- include mint
if taken and KEYS[6] then
    slot_last = number_in(marked)
    told = math.max(clock, slot_last)
    if slot_last > clock then
        tell_slot(slot_last, marked)
    end
end

-- Tells who holds it that somebody waits.
local function inquire(held, text)
    local client, number = string.match(held, '^(%x+):(%d+)@')
    if client then
        redis.pcall('PUBLISH', 'hf:c:' .. client, string.format(text, number))
    end
end

-- On a quorum, whoever has not won yet and has a later ticket gives way: so all are told, each time.
local function inquire_all(held)
    local text = string.format('i %%s %.0f %s', ticket, string.sub(value, 1, 32))
    local holders = call('ZRANGE', KEYS[5], 0, 99)
    holders[#holders + 1] = held
    for i = 1, #holders do
        inquire(holders[i], text)
    end
end

-- The first who waits: whoever takes the lock must look, and the holder may want to know.
local function begin_queue(held, fence)
    mark_queue(fence, 2 * lease)
    if ticket == 0 and fence and string.find(fence, '*', 1, true) then
        inquire(held, 'i %s')
    end
    -- Records whose place was lost, with a queue that was evicted, would stay for ever.
    for _, field in ipairs(call('HLEN', KEYS[4]) > 0 and call('HKEYS', KEYS[4]) or {}) do
        if string.sub(field, 1, 1) ~= '#' then
            call('HDEL', KEYS[4], field)
        end
    end
end

-- Joins the queue at its end, or keeps the place; returns the score. A late copy does not take back
-- a later one's number: that is what a grant is believed by.
local function enqueue(held)
    local last = tonumber(call('ZREVRANGE', KEYS[2], '0', '0', 'WITHSCORES')[2] or -1)
    local score, since = ticket > 0 and ticket or math.max(last, 0) + 1, now
    local highest = math.max(n, 0)
    if call('ZADD', KEYS[2], 'NX', score, value) == 0 then
        local before, began = string.match(call('HGET', KEYS[4], value) or '',
                                           '^(%d+) %d+ %d+ %d+ (%d+) ')
        since, highest = began or since, n < 0 and 0 or math.max(n, before or 0)
        score = call('ZSCORE', KEYS[2], value)
    else
        local fence = call('GET', KEYS[3])
        if last < 0 then
            begin_queue(held, fence)
        end
        announce(fence, 'waiting', value, nil, lease)
    end
    if ticket > 0 and held ~= value then
        inquire_all(held)
    end
    call('HSET', KEYS[4], value, string.format('%.0f %.0f %s %s %.0f %s', highest, now + lease,
                                               ARGV[2], ARGV[4], since, owner or ''))
    if call('PTTL', KEYS[4]) < lease then
        call('PEXPIRE', KEYS[4], 2 * lease) -- more than needed, so that it is done seldom
    end
    if call('PTTL', KEYS[2]) < lease then
        call('PEXPIRE', KEYS[2], 2 * lease)
        mark_queue(call('GET', KEYS[3]), 2 * lease) -- which says so for as long
    end
    return score
end

-- Busy: held with that value; queues if it may wait.
local function refuse(held, remaining)
    if n == 0 and proposed then
        local last = number_in(call('ZREVRANGE', KEYS[2], '0', '0', 'WITHSCORES')[2])
        return {0, remaining, cut(held), math.max(last, clock, number_in(call('GET', KEYS[3])))}
    elseif n == 0 then
        return {0, remaining, cut(held)}
    elseif call('ZSCORE', KEYS[2], '!' .. value) then
        return {-1}
    end
    local score = enqueue(held)
    local foreign = not string.match(held, '^%x+:%d+@') and call('EXISTS', KEYS[5]) == 0
    return {0, remaining, cut(held), call('ZCOUNT', KEYS[2], '0', score), foreign and 1 or 0}
end

if not taken then
    local held = call('GET', KEYS[1])
    local remaining = call('PTTL', KEYS[1])
    if held ~= (owner or value) then
        return refuse(held, remaining)
    end
end

local function granted(fence, remaining, waiting)
    return waiting > 0 and {fence, remaining, 1} or {fence, remaining}
end

-- The lock was free, and is ours for the moment: see whether it may stay so. Nil: it has gone to
-- somebody of the same owner, whom we join.
local function take()
    local waiting = call('ZCOUNT', KEYS[2], '0', '+inf')
    local buried = call('ZSCORE', KEYS[2], '!' .. value)
    local score
    if buried then
        call('DEL', KEYS[1])
    elseif waiting > 0 and n ~= 0 then
        score = enqueue(value)
    end
    if waiting > 0 then
        local stays = not buried and value or nil
        -- include hand_on
        if heir and buried then
            return {-1}
        elseif heir and heir ~= value then
            if owner and heir_owner == owner then
                return nil
            end
            local answer = {0, heir_lease, cut(heir_owner or heir)}
            if score then
                answer[4], answer[5] = call('ZCOUNT', KEYS[2], '0', score), 0
            end
            return answer
        end
    end
    if buried then
        if KEYS[6] then
            leave(kept)
        else
            mint(kept, 1, lease, call('ZCOUNT', KEYS[2], '0', '+inf'))
        end
        return {-1}
    end
    if waiting > 0 then -- it may be in the queue by an earlier copy
        call('ZREM', KEYS[2], value)
        call('HDEL', KEYS[4], value)
        waiting = call('ZCOUNT', KEYS[2], '0', '+inf')
    end
    if owner then
        call('DEL', KEYS[5])
        call('ZADD', KEYS[5], now + lease, value)
        call('PEXPIRE', KEYS[5], lease)
    end
    local fence = mint(kept, range, lease, waiting, brief)
    announce(kept, 'granted', value, fence + range - 1, lease)
    if owner and waiting > 0 then
        invite(owner, fence + range - 1)
    end
    return granted(fence, lease, waiting)
end

if taken then
    -- A script that fails does not take back what it has done: so that is done here.
    local fine, answer = true, type(kept) == 'table' and kept or marked
    if type(answer) ~= 'table' then
        fine, answer = pcall(take)
    end
    if (not fine or answer and answer.err) and call('GET', KEYS[1]) == (owner or value) then
        call('DEL', KEYS[1])
        if type(kept) == 'string' then
            redis.pcall('SET', KEYS[3], kept, 'KEEPTTL')
        elseif not kept then
            call('DEL', KEYS[3])
        end
    end
    if answer then
        return (fine or type(answer) == 'table') and answer or {err = answer}
    end
end

-- Whether somebody with an earlier ticket waits: whoever gave way to that must not join again those
-- who still have to.
local function is_later()
    local first = ticket > 0
        and call('ZRANGEBYSCORE', KEYS[2], '0', '+inf', 'WITHSCORES', 'LIMIT', '0', '1') or {}
    local score = tonumber(first[2] or ticket)
    return score < ticket or score == ticket and first[1] and first[1] < value
end

-- Joins those who hold it for the owner. False: it is held by somebody else who has that name.
local function join()
    if call('ZCOUNT', KEYS[5], string.format('(%.0f', now), '+inf') == 0 then
        return false
    end
    call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now)
    call('ZADD', KEYS[5], now + lease, value)
    local latest = call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
    call('PEXPIREAT', KEYS[1], latest)
    call('PEXPIREAT', KEYS[5], latest)
    if call('PTTL', KEYS[3]) < tonumber(brief) then
        call('PEXPIRE', KEYS[3], brief)
    end
    call('ZREM', KEYS[2], value)
    call('HDEL', KEYS[4], value)
    return true
end

local remaining = call('PTTL', KEYS[1])
if owner then
    local own = number_in(call('ZSCORE', KEYS[5], value))
    if own > now then
        remaining = own - now
    elseif call('ZSCORE', KEYS[2], '!' .. value) then
        return {-1}
    elseif not is_later() and join() then
        remaining = lease
    else
        return refuse(owner, remaining)
    end
elseif remaining < 0 then -- somebody took the expiry away: a crash would lock it for ever
    call('PEXPIRE', KEYS[1], lease)
    remaining = lease
end
local last = number_in(call('GET', KEYS[3]))
local waiting = call('ZCOUNT', KEYS[2], '0', '+inf')
return granted(last > 0 and last >= range and last - range + 1 or mint(nil, range, lease, waiting), remaining, waiting)
