-- Pasted into the scripts of stock: the item, its requests, and what has run out.
--
-- KEYS 1 the item, a hash: total, available, reserved, sold, nobody (of those sold: to no user by
--      name), limit (per user, 0: none), keep (ms for which requests are remembered), turn (when those
--      remembered become the old ones), due (when a reservation ends first, or earlier; 0: there is
--      none), begun (by which request), old (if there may be old requests); and of each user
--      "=<user>", how many they have, and "-<user>", how many of those are reserved
--      2 requests, a hash: "<verb> <state> <units> <left> <end> <user>"
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
                  'due')
local exists = item[1] and true
local available, reserved, sold, nobody = tonumber(item[1]), tonumber(item[2]), tonumber(item[3]),
                                          tonumber(item[4])
local limit, keep, turn, due = tonumber(item[5]), tonumber(item[6]), tonumber(item[7]),
                               tonumber(item[8])

-- Numbers are whole, and small enough to be handed over, or joined to a text, without loss.
local function save()
    call('HSET', KEYS[1], 'available', available, 'reserved', reserved, 'sold', sold,
         'nobody', nobody, 'due', due)
end

-- What is remembered of a request: verb, state, units, left, end, user; nil: nothing.
local function find(request)
    local record = call('HGET', KEYS[2], request) or call('HGET', KEYS[3], request)
    if not record then
        return nil
    end
    local verb, state, units, left, ends, user =
        string.match(record, '^(%S) (%S) (%d+) (%-?%d+) (%d+) (.*)$')
    return verb, state, tonumber(units), tonumber(left), tonumber(ends), user
end

local function remember(request, verb, state, units, left, ends, user)
    call('HSET', KEYS[2], request, verb .. ' ' .. state .. ' ' .. units .. ' ' .. left .. ' ' .. ends ..
         ' ' .. user)
end

-- Requests are forgotten in turns: what is remembered becomes old, and what was old is dropped, but
-- for reservations that are still open.
if exists and now >= turn then
    for _, request in ipairs(call('ZRANGE', KEYS[4], 0, -1)) do
        local record = call('HGET', KEYS[3], request)
        if record and call('HEXISTS', KEYS[2], request) == 0 then
            call('HSET', KEYS[2], request, record)
        end
    end
    turn = now + keep
    call('HSET', KEYS[1], 'turn', turn, 'old', 1)
    call('UNLINK', KEYS[3])
    if call('EXISTS', KEYS[2]) == 1 then
        call('RENAME', KEYS[2], KEYS[3])
    end
end

local function add(field, units)
    if call('HINCRBY', KEYS[1], field, units) <= 0 then
        call('HDEL', KEYS[1], field)
    end
end

-- A reservation ends without being confirmed: its units are available again.
local function give_back(request, units, left, ends, user)
    available, reserved = available + units, reserved - units
    if user ~= '' then
        add('=' .. user, -units)
        add('-' .. user, -units)
    end
    call('ZREM', KEYS[4], request)
    remember(request, 'r', 'x', units, left, ends, user)
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
        for _, request in ipairs(ended) do
            local _, state, units, left, ends, user = find(request)
            if state == 'o' then
                give_back(request, units, left, ends, user)
            else
                call('ZREM', KEYS[4], request) -- somebody has meddled; an audit will not add up
            end
        end
    until #ended < 64 or available >= wanted or rounds == 64
    local first = call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
    due = tonumber(first[2] or 0)
    return true
end
