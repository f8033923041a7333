-- refresh: renews holds with which nothing special is the matter, as cheaply as it can be done: a
-- server runs one script at a time, and there may be ten thousand of them.
--
-- KEYS for each hold: the lock, its fence
-- ARGV for each hold: its value, lease in ms (the longest that it ever asked for)
-- -> for each hold: remaining ms, or -1: something is, so use renew for this one
--
-- A mark behind the fence, or no fence, may mean a note for the holder.
local call = redis.call
local found = call('MGET', unpack(KEYS))
local answers = {}
for i = 1, #ARGV, 2 do
    if found[i] == ARGV[i] and tonumber(found[i + 1]) then
        call('PEXPIRE', KEYS[i], ARGV[i + 1])
        answers[#answers + 1] = tonumber(ARGV[i + 1])
    else
        answers[#answers + 1] = -1
    end
end
return answers
