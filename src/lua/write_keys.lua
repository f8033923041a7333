-- Pasted into write_held and write_fenced, with `late`: the key of marks.
--
-- Nothing is undone if a script fails in the middle. The first write is refused if the server is
-- full, a replica or unable to save, and no later one is then: so it is all or nothing.
-- include write_marks
local function write_keys(key, word)
    if call('HGET', late, ARGV[3]) then
        return
    end
    for i = key, #KEYS do
        local action, value, expire = ARGV[word], ARGV[word + 1], ARGV[word + 2]
        if action == 'd' then
            call('DEL', KEYS[i])
        elseif expire == '0' then
            call('SET', KEYS[i], value)
        else
            call('SET', KEYS[i], value, 'PX', expire)
        end
        word = word + 3
    end
    if ARGV[2] == '1' then
        mark(late, ARGV[3])
    end
end
