-- join: what a server of a quorum knows of itself. A server that was restarted may have forgotten
-- what it granted, so it has no vote until somebody who may says that it has one again; and it may
-- have forgotten fences, so the others say from where it has to go on.
--
-- KEYS 1 the process that has a vote, as '<run id> <base>', 2 the floor: no fence that is believed, or
--      may be soon, is higher
-- ARGV 1 run id of the process, as its connection says, 2 the floor is to be raised to that (0: left
--      alone), 3 from now on it has a vote, and fences above this base; '': no change
-- -> {1: it has a vote, 0: it has none; its base, its floor, its clock in us}
local call = redis.call
local run, base = string.match(call('GET', KEYS[1]) or '', '^(%x+) (%d+)$')
local floor = tonumber(call('GET', KEYS[2]) or 0)
local wanted = math.max(floor, tonumber(ARGV[2]), tonumber(ARGV[3]) or 0)
if wanted > floor then
    call('SET', KEYS[2], string.format('%.0f', wanted))
    floor = wanted
end
if run ~= ARGV[1] and ARGV[3] ~= '' then
    run, base = ARGV[1], ARGV[3]
    call('SET', KEYS[1], run .. ' ' .. base)
end
local votes = run == ARGV[1]
local time = call('TIME')
return {votes and 1 or 0, votes and tonumber(base) or 0, floor, time[1] * 1000000 + time[2]}
