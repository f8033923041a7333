-- write_held: writes keys if a hold still stands.
--
-- KEYS 1 the lock, 2 its holders, 3 marks of calls, then those to be written
-- ARGV 1 run id, 2 whether a copy may have come before, 3 which call this is, 4 value of the hold,
--      5 owner, or empty, then for each key what to do with it (s set, d delete), its value, and ms
--      until it expires, 0: never
-- -> 1 written, 0 not ours any more, -1 the same, but a copy that came before may have written
local call = redis.call
local late, value, owner = KEYS[3], ARGV[4], ARGV[5]
local stands = call('GET', KEYS[1]) == (owner ~= '' and owner or value)
if stands and owner ~= '' then
    local time = call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    stands = tonumber(call('ZSCORE', KEYS[2], value) or 0) > now
end
if not stands then
    return ARGV[2] == '1' and -1 or 0
end
-- include write_keys
write_keys(4, 6)
return 1
