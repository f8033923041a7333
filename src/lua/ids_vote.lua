-- ids_vote: what one server of a quorum does for a block of ids, for whoever has the lock of that
-- name with this fence. Two steps: asked for what it knows, it promises to listen to no smaller
-- fence any more; told what was made of the answers, it keeps that, if its own answer was among them
-- and it has promised nothing else since. So a block that counts was chosen by what the very
-- processes said that keep it: any two such blocks have one of the servers in common, and the later
-- one knows of the earlier, unless that server forgot it. A process that has not kept anything yet
-- says so. A copy that comes twice does no harm, and what is kept never goes down.
--
-- KEYS 1 where the name stands: "<run id> <epoch> <time part> <next sequence> <fence>"
-- ARGV 1 run id of this server process, 2 unused, 3 epoch in seconds, 4 fence; to be kept: 5 time
--      part, 6 sequence behind the block, 7 and so on: the processes whose answers it is made of
-- -> {0, fence} that is promised to somebody else, or this process was not asked; {-1, epoch} others
--    use another one; kept: {1}; asked: {1 or, if another process may know more, 2; now, time part,
--    next sequence, this process as a number}
local call = redis.call
local epoch, fence = tonumber(ARGV[3]), tonumber(ARGV[4])
local process = tonumber(string.sub(ARGV[1], 1, 12), 16) or 0
local kept = call('GET', KEYS[1])
local run, kept_epoch, part, sequence, last =
    string.match(kept or '', '^(%S+) (%d+) (%d+) (%d+) (%d+)$')
if kept_epoch and tonumber(kept_epoch) ~= epoch then
    return {-1, tonumber(kept_epoch)}
end
part, sequence, last = tonumber(part or 0), tonumber(sequence or 0), tonumber(last or 0)
local function write(by)
    call('SET', KEYS[1], string.format('%s %.0f %.0f %.0f %.0f', by, epoch, part, sequence, fence))
end
if not ARGV[5] then
    if last > fence then
        return {0, last}
    end
    write(run or '-')
    return {run == ARGV[1] and 1 or 2, call('TIME')[1] - epoch, part, sequence, process}
end
local asked = false
for i = 7, #ARGV do
    asked = asked or tonumber(ARGV[i]) == process
end
if last ~= fence or not asked then
    return {0, last}
end
local new_part, new_sequence = tonumber(ARGV[5]), tonumber(ARGV[6])
if new_part > part or (new_part == part and new_sequence > sequence) then
    part, sequence = new_part, new_sequence
end
write(ARGV[1])
return {1}
