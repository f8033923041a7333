-- refresh: renews holds with which nothing special is the matter, as cheaply as it can be done: a
-- server runs one script at a time, and there may be ten thousand of them.
--
-- KEYS the lock of each hold, then the notes of each
-- ARGV the value of each hold, then the lease in ms of each, or one that is meant for all
-- -> how many there were, then the positions (from 1) of those that were not renewed, for which renew
--    is to be used: not ours any more, or with notes, or lasting that long already
--
-- Never shortens a lease, like renew: this may be a late copy from before a longer one was asked
-- for. What costs time is every string and every number that Lua makes, cold memory, and the number
-- of commands: so all values come with one command, whether there are notes with another, and since
-- 7.0 PEXPIRE compares by itself (older servers do not tell their version).
local call, compares = redis.call, redis.REDIS_VERSION_NUM
local count = #KEYS / 2
local found = call('MGET', unpack(KEYS, 1, count))
local noted = call('EXISTS', unpack(KEYS, count + 1)) > 0

local function raise(key, lease)
    if compares then
        return call('PEXPIRE', key, lease, 'GT') == 1
    end
    return call('PTTL', key) < tonumber(lease) and call('PEXPIRE', key, lease) == 1
end

local answer = {count}
for i = 1, count do
    local special = found[i] ~= ARGV[i] or noted and call('EXISTS', KEYS[count + i]) == 1
    if special or not raise(KEYS[i], ARGV[count + i] or ARGV[count + 1]) then
        answer[#answer + 1] = i
    end
end
return answer
