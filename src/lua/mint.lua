-- Pasted into acquire, release and break: fences. Needs `call`, `clock` (server time in us, or the
-- proposed fence if that is more), `now` (in ms), `keep` (ms for which a fence is kept at least) and
-- KEYS 2 the queue, 3 the fence, 4 the notes.
--
-- Mints `range` fences above the last one, which is kept, and returns the first; `waiting`: how many
-- wait. With a range of 0, for a copy of a hold, `clock` is the fence behind that of the hold, which is
-- kept then, unless a larger one was given to somebody: nobody else may find that one under this hold. Marks behind the number: '+' the queue must be looked at, '*' the holder wants to know when
-- somebody begins to wait, '@' somebody watches.
local function mint(kept, range, lease, waiting)
    local first = math.max(clock, tonumber(string.match(kept or '', '^%d+') or 0) + 1)
    if range == 0 and first > clock then
        first = first + 1
    end
    local top = first + range - 1
    local marks = range > 1 and '*' or ''
    if waiting == 0 and call('ZCARD', KEYS[2]) > 0 then
        call('ZREMRANGEBYSCORE', KEYS[2], string.format('(-%.0f', now), '(0')
        waiting = call('ZCARD', KEYS[2]) -- of these, late copies are still to be turned away
    end
    if waiting > 0 then
        marks = '+' .. marks
    end
    if kept and string.find(kept, '@', 1, true)
        and tonumber(call('HGET', KEYS[4], '#watched') or 0) > now then
        marks = marks .. '@'
    end
    call('SET', KEYS[3], string.format('%.0f%s', top, marks),
         'PXAT', math.floor(top / 1000) + math.max(keep, 2 * lease))
    return first
end

-- Tells those who watch the lock what has happened.
local function announce(kept, word, value, fence, lease)
    if kept and string.find(kept, '@', 1, true) then
        redis.pcall('PUBLISH', 'hf:e:' .. KEYS[3],
                    string.format('%s %.0f %d %s', word, fence, lease, value))
    end
end
