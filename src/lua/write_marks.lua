-- Pasted into write_keys and value: marks of calls.
--
-- A call whose first copy was lost is marked by the copy that is answered: if the lost one comes
-- after that, late, it must not write over what came since. Marks are fields of a hash: the word of
-- the call, and the second in which it was marked. They are kept for a day: all of them end a day
-- after the last, and each call that marks looks at some, goes on where the last one stopped (the
-- empty field has that place), and drops those that are older. Marks of clients of 0.7 have no time;
-- they begin to count when they are seen.
local function mark(late, word)
    local now = tonumber(call('TIME')[1])
    local page = redis.pcall('HSCAN', late, call('HGET', late, '') or 0, 'COUNT', 16)
    local fields = page[2] or {} -- none if that is not permitted
    for i = 1, #fields, 2 do
        local since = tonumber(fields[i + 1]) or 1
        if fields[i] ~= '' and since == 1 then
            call('HSET', late, fields[i], now)
        elseif fields[i] ~= '' and since < now - 86400 then
            call('HDEL', late, fields[i])
        end
    end
    call('HSET', late, word, now, '', page[1] or 0)
    call('PEXPIRE', late, 86400000)
end
