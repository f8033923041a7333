-- release: ends a hold, also one that waits, or was perhaps never granted. Frees the lock only if it
-- is held with this hold's value, or, with an owner, if this was the owner's last live hold; and
-- hands it on to the next who waits.
--
-- KEYS 1 the lock, 2 its queue, 3 its fence, 4 its notes, 5 its holders, 6 the mark of its slot,
--      which a quorum does not have
-- ARGV 1 value of this hold, 2 ms for which a copy of its acquire that is still on the way must be
--      turned away (0: there is none), 3 ms for which the next fence is kept, 4 owner or '', 5 on a
--      quorum the least fence that is proposed for the next who has it, otherwise ''; 6 the last of
--      the fences that were reserved for it (0: not known), 7 how many of these nobody has had. What
--      is left out at the end is 0, an hour, '' and 0. Who leaves out 6 has had the lock from acquire
--      itself: a fence without marks is one that the slot was told
-- -> 1 released, 0 it was not ours, -fence it was not ours, and the hold with that fence was broken,
--    2 it was not ours, and no copy of this has released it: its fence is there as it was, and none
--    was to be given back, which others could have had since
--
-- A tombstone '!value' in the queue, with the score -(expiry in server ms), turns late copies away.
-- A server at its memory limit refuses writes that may grow, except after one that may not (DEL,
-- ZREM, ZREMRANGEBYSCORE): so these come first, and a release succeeds there too. When the lock
-- changes hands after a pause, nothing of the server is in a cache, and each command costs microseconds
-- by which the next holder gets it later: so there are few.
local call = redis.call
local value = ARGV[1]
local found = call('MGET', KEYS[1], KEYS[3])
if found[1] == value and (ARGV[2] or '0') == '0' and tonumber(found[2]) and not ARGV[6] then
    if KEYS[6] then
        call('DEL', KEYS[1], KEYS[3])
    else
        call('DEL', KEYS[1])
    end
    return 1
end

local proposed = ARGV[5] ~= '' and ARGV[5] or nil
local late, keep = tonumber(ARGV[2] or 0), ARGV[3] or '3600000'
local owner = ARGV[4] ~= '' and ARGV[4] or nil
local top, unused = ARGV[6] or '0', ARGV[7] or '0'
local time = call('TIME')
local clock = math.max(time[1] * 1000000 + time[2], tonumber(proposed or 0))
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local released = 0
local kept, stays = found[2], nil
local digits = string.match(kept or '', '^%d+') or '0'
-- include cut
-- include number
-- include mint

-- Fences that were reserved for this hold and that nobody has had are given out again: so fences do
-- not run away from the clock. Those who watch were told of the last one, and go by what grows.
if KEYS[6] and found[1] == value and unused ~= '0' and (top == '0' or top == digits)
    and not string.find(kept or '', '@', 1, true) then
    kept = string.format('%.0f', math.max(0, digits - unused)) .. string.match(kept or '', '%D*$')
end

if owner or found[1] ~= value then
    call('ZREM', KEYS[2], value)
    call('HDEL', KEYS[4], value)
end
if owner then
    local own = call('ZSCORE', KEYS[5], value)
    if own then
        call('ZREMRANGEBYSCORE', KEYS[5], '-inf', now)
        call('ZREM', KEYS[5], value)
        if tonumber(own) > now and call('GET', KEYS[1]) == owner then
            released = 1
            local latest = call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
            if latest then
                call('PEXPIREAT', KEYS[1], latest)
                call('PEXPIREAT', KEYS[5], latest)
            else
                call('DEL', KEYS[1])
            end
        end
    end
elseif found[1] == value then
    released = 1 -- if nobody gets it, it is deleted below
end

if late > 0 then
    call('ZREMRANGEBYSCORE', KEYS[2], string.format('(-%.0f', now), '(0')
    call('ZADD', KEYS[2], -(now + late), '!' .. value)
    if call('PTTL', KEYS[2]) < late then
        call('PEXPIRE', KEYS[2], late)
    end
    mark_queue(found[2], late)
end
if released > 0 and not owner or call('EXISTS', KEYS[1]) == 0 then
    if released > 0 then
        announce(found[2], 'released', value, nil, 0)
    end
    -- include hand_on
    if not heir and released > 0 and not owner then
        call('DEL', KEYS[1])
    end
    if not heir then
        pcall(leave, kept)
    end
end
if released > 0 then
    return released
end
local broken = call('HGET', KEYS[4], '#broken')
local left = string.find(found[2] or '', '-', 1, true)
if not broken and KEYS[6] and not owner and digits ~= '0' and digits == top and unused == '0'
    and not left then
    return 2
end
return -number_in(broken)
