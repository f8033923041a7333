-- ids: reserves a block of ids at a server that has them alone.
--
-- KEYS 1 where the name stands: "<run id> <epoch> <time part> <next sequence> <fence>"
-- ARGV 1 run id of this server process, 2 (any copy may be the first: what it reserves is its own),
--      3 epoch in seconds, 4 seconds to jump ahead of what may have been forgotten, 5 how many,
--      6 and 7 the time part and the sequence behind the last id that the caller has ever seen
-- -> {time part, first sequence}; {-1, epoch} others use another one; {-2} the epoch is used up, or
--    has not begun; {-3} the run id is empty: nobody could tell when the process is another one
--
-- Whoever wrote it down last may have been another process, which this one has succeeded without
-- knowing all that it did. Then ids go on from a time which that one cannot have reached, if clocks
-- are no further apart than they may be. The same if nothing is written down. That may happen twice
-- within a second, so the sequence begins in proportion to how much of the second is over: what lies
-- between is more than the largest block, if it is 8 ms, and then more than can be reserved.
local call = redis.call
if ARGV[1] == '' then
    return {-3}
end
local epoch, jump, count = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local time = call('TIME')
local now = time[1] - epoch
local part, sequence = tonumber(ARGV[6]), tonumber(ARGV[7])
local kept = call('GET', KEYS[1])
local run, kept_epoch, kept_part, kept_sequence =
    string.match(kept or '', '^(%S+) (%d+) (%d+) (%d+)')
if kept_epoch and tonumber(kept_epoch) ~= epoch then
    return {-1, tonumber(kept_epoch)}
end
kept_part, kept_sequence = tonumber(kept_part or 0), tonumber(kept_sequence or 0)
local seen = part > kept_part or (part == kept_part and sequence > kept_sequence)
if seen or run ~= ARGV[1] then
    local highest = math.max(part, kept_part)
    part, sequence = now + jump, time[2] * 2147
    if part <= highest then -- no further ahead than must be: jumps do not add up
        part = highest + 1
    end
elseif now > kept_part then
    part, sequence = now, 0
else
    part, sequence = kept_part, kept_sequence
end
if sequence + count > 4294967296 then
    part, sequence = part + 1, 0
end
if now < 0 or part >= 2147483648 then
    return {-2}
end
call('SET', KEYS[1], string.format('%s %.0f %.0f %.0f 0', ARGV[1], epoch, part, sequence + count))
return {part, sequence}
