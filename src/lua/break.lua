-- break: takes the lock away from a hold, by force, raises the fence above it, tells its holders and
-- hands the lock on. Tombstones keep late copies of the holders' requests from taking it again.
--
-- KEYS 1 the lock, 2 its queue, 3 its fence, 4 its notes, 5 its holders, 6 the mark of its slot,
--      which a quorum does not have
-- ARGV 1 the value that the lock has, 2 the fence that it has (both as inspect said, the value perhaps
--      cut, so that a copy of the request breaks nothing else), 3 ms for which the fence and the note
--      are kept, 4 on a
--      quorum: the new fence is to be at least that
-- -> the new fence (also to a copy that comes again), or 0: another hold has it now, or nobody
local call = redis.call
-- include cut
-- include number
local kept = call('GET', KEYS[3])
local last = number_in(kept)
local victim = ARGV[2] .. ':' .. ARGV[1]
local held = call('GET', KEYS[1])
if not held or cut(held) ~= ARGV[1] or last ~= tonumber(ARGV[2]) then
    local raised, whose = string.match(call('HGET', KEYS[4], '#raised') or '', '^(%d+):(.*)$')
    return whose == victim and number_in(raised) or 0
end
local proposed = ARGV[4]
local keep = math.max(tonumber(ARGV[3]), call('PTTL', KEYS[1]))
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local now = math.floor(clock / 1000)
clock = math.max(clock, tonumber(proposed or 0))
local late = math.max(call('PTTL', KEYS[1]), 1000)
local stays
-- include mint

local holders = call('ZRANGE', KEYS[5], 0, 999)
holders[#holders + 1] = ARGV[1]
call('DEL', KEYS[1], KEYS[5])
for i = 1, #holders do
    call('ZADD', KEYS[2], -(now + late), '!' .. holders[i])
end
if call('PTTL', KEYS[2]) < late then
    call('PEXPIRE', KEYS[2], late)
end
local fence = mint(kept, 1, 0, call('ZCOUNT', KEYS[2], '0', '+inf'))
local broken = string.format('%.0f', last > 0 and last or fence - 1)
call('HSET', KEYS[4], '#broken', broken, '#raised', string.format('%.0f:%s', fence, victim))
if call('PTTL', KEYS[4]) < keep then
    call('PEXPIRE', KEYS[4], keep)
end
for i = 1, #holders do
    local client, number = string.match(holders[i], '^(%x+):(%d+)@')
    if client then
        redis.pcall('PUBLISH', 'hf:c:' .. client, 'x ' .. number .. ' ' .. broken)
    end
end
announce(kept, 'broken', ARGV[1], fence, 0)
kept = call('GET', KEYS[3])
-- include hand_on
if not heir then
    leave(kept)
end
return fence
