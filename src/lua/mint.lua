-- Pasted into acquire, release and break: fences. Needs `call`, `clock` (server time in us, or the
-- proposed fence if that is more), `time` (its parts, as the server says them), `now` (in ms), `keep`
-- (ms for which a fence is kept at least), `cut` and KEYS 2 the queue, 3 the fence, 4 the notes.
--
-- Mints `range` fences above the last one, which is kept, and returns the first, and the last as text;
-- `waiting`: how many wait. With a range of 0, for a copy of a hold, `clock` is the fence behind that
-- of the hold, which is kept then, unless a larger one was given to somebody: nobody else may find
-- that one under this hold. Marks behind the number: '+' the queue must be looked at, '*' the holder
-- wants to know when somebody begins to wait, '@' somebody watches.
--
-- To print a number is slow: where one is at hand as text, as the time and mostly `keep` are, that is
-- used.
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
    local lasts = 2 * lease > tonumber(keep) and 2 * lease or keep
    local text
    if top == time[1] * 1000000 + time[2] then
        text = time[1] .. string.sub('00000' .. time[2], -6)
        call('SET', KEYS[3], text .. marks, 'PX', lasts)
    else
        text = string.format('%.0f', top)
        call('SET', KEYS[3], text .. marks, 'PXAT', math.floor(top / 1000) + lasts)
    end
    return first, text
end

-- Tells those who watch the lock what has happened; without a fence, that of the last hold.
local function announce(kept, word, value, fence, lease)
    if kept and string.find(kept, '@', 1, true) then
        fence = fence or tonumber(string.match(kept, '^%d+') or 0)
        redis.pcall('PUBLISH', 'hf:e:' .. KEYS[3],
                    string.format('%s %.0f %d %s', word, fence, lease, cut(value)))
    end
end
