-- refresh: renews holds with which nothing special is the matter, as cheaply as it can be done: a
-- server runs one script at a time, and there may be ten thousand of them.
--
-- KEYS for each hold: the lock, its fence
-- ARGV for each hold: its value, lease in ms
-- -> for each hold: remaining ms, or -1: something is, so use renew for this one
--
-- A mark behind the fence, or no fence, may mean a note for the holder. Never shortens a lease, like
-- renew: this may be a late copy from before a longer one was asked for.
local call = redis.call
local found = call('MGET', unpack(KEYS))
local answers = {}
for i = 1, #ARGV, 2 do
    local remaining = -1
    if found[i] == ARGV[i] and tonumber(found[i + 1]) then
        local lease = tonumber(ARGV[i + 1])
        remaining = call('PTTL', KEYS[i])
        if remaining < lease then
            call('PEXPIRE', KEYS[i], lease)
            remaining = lease
        end
    end
    answers[#answers + 1] = remaining
end
return answers
