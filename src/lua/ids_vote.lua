-- ids_vote: what one server of a quorum does for a block of ids, for whoever has the lock of that
-- name with this fence. Two steps: asked for what it knows, it promises to listen to no smaller
-- fence any more; told what was made of the answers, it keeps that. A block that a majority has kept
-- is known to every majority that is asked later, unless servers forget; and who was asked by
-- somebody newer keeps nothing for the older one. A copy that comes twice does no harm.
--
-- KEYS 1 where the name stands: "<run id> <epoch> <time part> <next sequence> <fence>"
-- ARGV 1 run id of this server process, 2 unused, 3 epoch in seconds, 4 fence; to be kept: 5 time
--      part, 6 sequence behind the block
-- -> {0, fence} somebody with that fence was here; {-1, epoch} others use another one; kept: {1};
--    asked: {1 or, if another process may know more, 2; now, time part, next sequence}
local call = redis.call
local epoch, fence = tonumber(ARGV[3]), tonumber(ARGV[4])
local kept = call('GET', KEYS[1])
local run, kept_epoch, part, sequence, last =
    string.match(kept or '', '^(%S+) (%d+) (%d+) (%d+) (%d+)$')
if kept_epoch and tonumber(kept_epoch) ~= epoch then
    return {-1, tonumber(kept_epoch)}
end
part, sequence, last = tonumber(part or 0), tonumber(sequence or 0), tonumber(last or 0)
if last > fence then
    return {0, last}
end
local forgets = run ~= ARGV[1]
if ARGV[5] then
    run, part, sequence = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[6])
end
call('SET', KEYS[1], string.format('%s %.0f %.0f %.0f %.0f', run or '-', epoch, part, sequence, fence))
if ARGV[5] then
    return {1}
end
return {forgets and 2 or 1, call('TIME')[1] - epoch, part, sequence}
