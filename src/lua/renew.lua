-- renew: makes holds last at least the given time from now on. Never shortens one: a late copy of a
-- shorter renewal must not take back what a longer one gave. Keeps their fences alive.
--
-- KEYS for each hold: the lock, its fence, its notes; with an owner also its holders
-- ARGV for each hold: its value, lease in ms, ms for which the fence is to be kept, owner or '',
--      its fence or 0. With a fence: if the lock has a larger one, it was granted since, be it to the
--      same value by a copy that came late; if it has a smaller one, that is raised. So it is for a
--      hold that somebody takes up by its token, and on a quorum whose servers disagree about it. With
--      a '-' before the fence a larger one is left as it is: another one of the owner has raised it
-- -> for each hold: remaining ms              renewed
--                   {remaining ms, request}   renewed, and its holder is asked to give it up; of the
--                                             request at most 1024 bytes
--                   0                         it is not ours any more
--                   {0, fence}                and the hold with that fence was broken
--                   an error                  of this one alone, such as a key of another type
local call = redis.call
local answers = {}
local at = 1
local now
-- include number

local function time()
    if not now then
        local parts = call('TIME')
        now = parts[1] * 1000 + math.floor(parts[2] / 1000)
    end
    return now
end

local function raise(key, lease)
    local remaining = call('PTTL', key)
    if remaining < lease then
        call('PEXPIRE', key, lease)
        return lease
    end
    return remaining
end

-- The hold's own time, or 0.
local function renew_shared(lock, holders, value, lease, owner)
    time()
    local own = number_in(call('ZSCORE', holders, value))
    if own <= now or call('GET', lock) ~= owner then
        return 0
    end
    if own < now + lease then
        own = now + lease
        -- First a write that cannot grow: after it, a server at its memory limit allows the next.
        call('ZREMRANGEBYSCORE', holders, '-inf', now)
        call('ZADD', holders, own, value)
        local latest = call('ZRANGE', holders, -1, -1, 'WITHSCORES')[2]
        call('PEXPIREAT', lock, latest)
        call('PEXPIREAT', holders, latest)
    end
    return own - now
end

local function renew(lock, fence, notes, holders, value, lease, keep, owner, known)
    local remaining, kept, last, shared = 0, nil, 0, known < 0
    if known ~= 0 then
        known = math.abs(known)
        kept = call('GET', fence)
        last = number_in(kept)
    end
    if last > known and not shared then
        remaining = 0
    elseif holders then
        remaining = renew_shared(lock, holders, value, lease, owner)
    elseif call('GET', lock) == value then
        remaining = raise(lock, lease)
    end
    if remaining > 0 and last < known then
        -- '+', since somebody may wait, if it was lost with its marks, and the slot must be told.
        local marks = string.gsub(string.match(kept or '', '^%d*(.*)$'), '^%+?', '+')
        call('SET', fence, string.format('%.0f', known) .. marks, 'PX',
             keep + math.max(0, math.floor(known / 1000) - time()))
    elseif remaining > 0 then
        raise(fence, keep)
    end
    local note = call('HGET', notes, remaining > 0 and '#revoked' or '#broken')
    return note and {remaining, string.sub(note, 1, 1024)} or remaining
end

for i = 1, #ARGV, 5 do
    local owner = ARGV[i + 3]
    local holders = owner ~= '' and KEYS[at + 3] or nil
    local fine, answer = pcall(renew, KEYS[at], KEYS[at + 1], KEYS[at + 2], holders, ARGV[i],
                               tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), owner,
                               tonumber(ARGV[i + 4]))
    if not fine and type(answer) ~= 'table' then
        answer = {err = answer}
    end
    answers[#answers + 1] = answer
    at = at + (holders and 4 or 3)
end
return answers
