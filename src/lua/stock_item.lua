-- Pasted into the scripts of stock: the item, its requests, and what has run out. The script has put
-- the request that it is about into `request` before; empty: none.
--
-- KEYS 1 the item, a hash: total, available, reserved, sold, nobody (of those sold: to no user by
--      name), limit (per user, 0: none), keep (ms for which requests are remembered), turn (when those
--      remembered become the old ones), due (when a reservation ends first, or earlier; 0: there is
--      none), begun (by which request), old (if there may be old requests); of each user
--      "=<user>", how many they have, and "-<user>", how many of those are reserved; and of each open
--      reservation "~<request>", its record
--      2 requests, a hash: "<verb> <state> <units> <left> <end> <user>"; it has an empty field, so
--      that it is there and can have an expiry before the first request is
--      3 old requests, which are forgotten next
--      4 open reservations, a sorted set by their end
-- Verbs: t take, r reserve, p put, n new units, s set. States: '-' done; of a reservation o open,
-- c confirmed, x ended; f refused, then `left` is what was said. A reservation of 0 units is one that
-- was cancelled before it came.
--
-- Scripts are not undone when they fail: what may fail for lack of a permission comes before what
-- counts, and the item is written last.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local item = call('HMGET', KEYS[1], 'available', 'reserved', 'sold', 'nobody', 'limit', 'keep', 'turn',
                  'due', '~' .. request)
local exists = item[1] and true
local available, reserved, sold, nobody = tonumber(item[1]), tonumber(item[2]), tonumber(item[3]),
                                          tonumber(item[4])
local limit, keep, turn, due = tonumber(item[5]), tonumber(item[6]), tonumber(item[7]),
                               tonumber(item[8])

-- Numbers are whole, and small enough to be handed over, or joined to a text, without loss.
local function save(...)
    call('HSET', KEYS[1], 'available', available, 'reserved', reserved, 'sold', sold,
         'nobody', nobody, 'due', due, ...)
end

-- What is remembered of a request: verb, state, units, left, end, user; nil: nothing. The item has
-- the record of an open reservation too, which outlives the logs. It counts only while the
-- reservation is in the sorted set: clients of 0.7 settle one and leave its record in the item.
local function find(wanted)
    local record = call('HGET', KEYS[2], wanted) or call('HGET', KEYS[3], wanted)
    if not record and (wanted ~= request or item[9]) then
        record = call('ZSCORE', KEYS[4], wanted) and call('HGET', KEYS[1], '~' .. wanted)
    end
    if not record then
        return nil
    end
    local verb, state, units, left, ends, user =
        string.match(record, '^(%S) (%S) (%d+) (%-?%d+) (%d+) (.*)$')
    return verb, state, tonumber(units), tonumber(left), tonumber(ends), user
end

-- Returns the record.
local function remember(wanted, verb, state, units, left, ends, user)
    local record = verb .. ' ' .. state .. ' ' .. units .. ' ' .. left .. ' ' .. ends .. ' ' .. user
    call('HSET', KEYS[2], wanted, record)
    return record
end

local function add(field, units)
    if call('HINCRBY', KEYS[1], field, units) <= 0 then
        call('HDEL', KEYS[1], field)
    end
end

-- A reservation ends without being confirmed: its units are available again. One that is not in the
-- sorted set is of an item that was deleted since, and has none here.
local function give_back(wanted, units, left, ends, user)
    remember(wanted, 'r', 'x', units, left, ends, user)
    if call('ZREM', KEYS[4], wanted) == 0 then
        return
    end
    available, reserved = available + units, reserved - units
    if user ~= '' then
        add('=' .. user, -units)
        add('-' .. user, -units)
    end
    call('HDEL', KEYS[1], '~' .. wanted)
end

-- Ends the reservations whose time is over; not all at once, but so many that `wanted` units are
-- available, if there are, and no more than the server has the time for: the next call goes on.
-- Returns whether there were any.
local function sweep(wanted)
    if due == 0 or due > now then
        return false
    end
    local rounds = 0
    repeat
        local ended = call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, 64)
        rounds = rounds + 1
        for _, one in ipairs(ended) do
            local _, state, units, left, ends, user = find(one)
            if state == 'o' then
                give_back(one, units, left, ends, user)
            else
                call('ZREM', KEYS[4], one) -- somebody has meddled; an audit will not add up
            end
        end
    until #ended < 64 or available >= wanted or rounds == 64
    local first = call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
    due = tonumber(first[2] or 0)
    return true
end

-- When the log of requests may become the old one, and the old one be dropped: reservations that are
-- open now have ended by then.
local function next_turn(at)
    return math.max(at, tonumber(call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2] or 0))
end

-- Requests are forgotten in turns: what is remembered becomes old, and what was old is dropped. If
-- nobody comes for a turn, both logs expire. Open reservations do not need them: the item has their
-- records. Clients of 0.7 do: so all that are in the old log have run out when it is dropped, and
-- are given back first, 64 with each call.
if exists and now >= turn then
    if sweep(0) then
        save()
    end
    if due == 0 or due > now then
        turn = next_turn(now + keep)
        call('HSET', KEYS[1], 'turn', turn, 'old', 1)
        call('UNLINK', KEYS[3])
        if call('EXISTS', KEYS[2]) == 1 then
            call('RENAME', KEYS[2], KEYS[3])
            call('PEXPIREAT', KEYS[3], turn + keep)
        end
        call('HSET', KEYS[2], '', '')
    end
    call('PEXPIREAT', KEYS[2], math.max(turn, now) + keep)
end
