-- Pasted into acquire, release and break: fences. Needs `call`, `clock` (server time in us, or the
-- proposed fence if that is more), `time` (its parts, as the server says them), `now` (in ms), `keep`
-- (ms for which a fence is kept at least), `cut`, `number_in` and KEYS 2 the queue, 3 the fence, 4 the notes, 6 the
-- mark of the slot.
--
-- The slot's mark is for all names of the slot: no fence of a name whose own key is gone was larger.
-- So whoever deletes a fence, or writes one without marks, which the release deletes at once, tells
-- the slot. A fence with marks is told when it is deleted. Marks behind the number: '+' the queue
-- must be looked at, or the slot must be told, '*' the holder wants to know when somebody begins to
-- wait, '@' somebody watches. A quorum has no such mark, and fences are not deleted there.
--
-- Clients of 0.7 do not know the slot's mark, and reserve fences ahead of the clock: they compare the
-- clock with the fence of the name. So a name whose fence is ahead of the clock keeps it until the
-- clock has passed it, or for `keep`.
--
-- To print a number is slow: where one is at hand as text, as the time and mostly `keep` are, that is
-- used.
local slot_last, told = 0, 0 -- what the slot's mark was, as far as it was read, and is

-- `number` and its text. A larger one that is there stays.
local function tell_slot(number, text)
    local life = keep + math.max(0, math.floor(number / 1000) - now)
    local before = number_in(redis.pcall('SET', KEYS[6], text, 'PX', life, 'GET'))
    if before > number then
        life = keep + math.max(0, math.floor(before / 1000) - now)
        redis.pcall('SET', KEYS[6], string.format('%.0f', before), 'PX', life)
    end
    told = math.max(before, number)
end

-- The queue holds something, for so many ms at least: says so behind the fence.
local function mark_queue(kept, life)
    if kept and not string.find(kept, '+', 1, true) then
        call('SET', KEYS[3], string.gsub(kept, '^%d+', '%0+'), 'KEEPTTL')
    end
    if kept and call('PTTL', KEYS[3]) < life then
        call('PEXPIRE', KEYS[3], life)
    elseif not kept and KEYS[6] then
        call('SET', KEYS[3], '0+', 'PX', life)
    end
end

-- Mints `range` fences above the last one, which is kept, and returns the first, and the last as text;
-- `waiting`: how many wait. With a range of 0, for a copy of a hold, `clock` is the fence behind that
-- of the hold, which is kept then, unless a larger one was given to somebody: nobody else may find
-- that one under this hold. `brief`: ms for which it is kept if it has no marks; otherwise `keep`.
local function mint(kept, range, lease, waiting, brief)
    local last = number_in(kept)
    if KEYS[6] and last == 0 and told == 0 then
        slot_last = number_in(redis.pcall('GET', KEYS[6]))
    end
    local first = math.max(clock, math.max(last, slot_last) + 1)
    if range == 0 and first > clock then
        first = first + 1
    end
    local top = first + range - 1
    local marks = range > 1 and '*' or ''
    if waiting == 0 and call('ZCARD', KEYS[2]) > 0 then
        call('ZREMRANGEBYSCORE', KEYS[2], string.format('(-%.0f', now), '(0')
        waiting = call('ZCARD', KEYS[2]) -- of these, late copies are still to be turned away
    end
    if waiting > 0 or KEYS[6] and last >= clock then
        marks = '+' .. marks
    end
    if kept and string.find(kept, '@', 1, true)
        and tonumber(call('HGET', KEYS[4], '#watched') or 0) > now then
        marks = marks .. '@'
    end
    local lasts = marks == '' and brief or keep
    lasts = 2 * lease > tonumber(lasts) and 2 * lease or lasts
    local text
    if top == time[1] * 1000000 + time[2] then
        text = time[1] .. string.sub('00000' .. time[2], -6)
        call('SET', KEYS[3], text .. marks, 'PX', lasts)
    else
        text = string.format('%.0f', top)
        call('SET', KEYS[3], text .. marks, 'PXAT', math.floor(top / 1000) + lasts)
    end
    if KEYS[6] and marks == '' and top > told then
        tell_slot(top, text)
    end
    return first, text
end

-- Nobody has the lock now: the slot takes its fence, and under its name stays what marks announce,
-- for as long as there is something to announce. Those who watch go by the number, so it stays with
-- them, marked with '-'; and while it is ahead of the clock. On a quorum nothing changes.
local function leave(kept)
    if not KEYS[6] then
        return
    end
    local last = number_in(kept)
    local text = last > 0 and string.match(kept, '^%d+') or '0'
    local number, marks, life = '0', '', 0
    if call('ZCARD', KEYS[2]) > 0 then
        call('ZREMRANGEBYSCORE', KEYS[2], string.format('(-%.0f', now), '(0')
        life = call('PTTL', KEYS[2]) -- below 0 if nothing is left
        marks = life > 0 and '+' or ''
    end
    if kept and string.find(kept, '@', 1, true) then
        local watched = tonumber(call('HGET', KEYS[4], '#watched') or 0) - now
        if watched > 0 then
            number, marks, life = text .. '-', marks .. '@', math.max(life, watched)
        end
    end
    if last > clock then
        local ahead = math.floor(last / 1000) + 1 - now
        number, life = text .. '-', math.max(life, math.min(ahead, tonumber(keep)))
    end
    if last > 0 then
        tell_slot(last, text)
    end
    if life > 0 then
        call('SET', KEYS[3], number .. marks, 'PX', life)
    else
        call('DEL', KEYS[3])
    end
end

-- Tells those who watch the lock what has happened; without a fence, that of the last hold.
local function announce(kept, word, value, fence, lease)
    if kept and string.find(kept, '@', 1, true) then
        fence = fence or number_in(kept)
        redis.pcall('PUBLISH', 'hf:e:' .. KEYS[3],
                    string.format('%s %.0f %d %s', word, fence, lease, cut(value)))
    end
end

-- Of a waiter that lives: the number of its copy, its lease, range, owner and channel. Nil: it does
-- not; false: its record cannot be read. With `whose`, only if it has that owner. One whose number is
-- 0 gets no messages, and asks by itself: it lives while it was heard from lately.
local function look_up(waiter, whose)
    local record = redis.pcall('HGET', KEYS[4], waiter)
    if type(record) == 'table' then
        return false
    end
    local n, alive, lease, range, owner = string.match(
        record or '', '^(%d+) (%d+) (%d+) (%d+) %d+ (.*)$')
    local channel = 'hf:c:' .. string.sub(waiter, 1, 32)
    local heard = n and tonumber(alive) >= now and (not whose or owner == whose)
        and (n == '0' and {0, 1} or redis.pcall('PUBSUB', 'NUMSUB', channel))
    if heard and (heard.err or heard[2] > 0) then
        return n, lease, range, owner, channel
    end
end

-- The owner has the lock, with that fence: so have those of its own that wait. Returns for how many ms
-- the lock lasts then.
local function invite(owner, fence)
    local guests, waiting = {}, call('ZRANGEBYSCORE', KEYS[2], '0', '+inf', 'LIMIT', '0', '100')
    for i = 1, #waiting do
        local n, lease, range, _, channel = look_up(waiting[i], owner)
        if n then
            call('ZREM', KEYS[2], waiting[i])
            call('HDEL', KEYS[4], waiting[i])
            call('ZADD', KEYS[5], now + lease, waiting[i])
            guests[#guests + 1] = n ~= '0' and {channel, string.format(
                'g %s %s %.0f %s %d', string.match(waiting[i], ':(%d+)@') or 0, n,
                fence - range + 1, lease, call('ZCOUNT', KEYS[2], '0', '+inf') > 0 and 1 or 0)} or nil
        elseif proposed then
            break
        end
    end
    local longest = call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
    call('PEXPIREAT', KEYS[1], longest)
    call('PEXPIREAT', KEYS[5], longest)
    for i = 1, #guests do
        redis.pcall('PUBLISH', guests[i][1], guests[i][2])
    end
    return longest - now
end
