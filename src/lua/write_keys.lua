-- Pasted into write_held and write_fenced. Nothing is undone if a script fails in the middle: what
-- could fail is looked at first, so that a full server refuses before anything is written (SET is
-- refused as a whole when memory is short).
local function write_keys(key, word)
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
end
