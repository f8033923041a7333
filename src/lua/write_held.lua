-- write_held: writes keys if a hold still stands.
--
-- KEYS 1 the lock, 2 its holders, then those to be written
-- ARGV 1 run id, 2 whether a copy may have come before, 3 value of the hold, 4 owner, or empty, then
--      for each key what to do with it (s set, d delete), its value, and ms until it expires, 0: never
-- -> 1 written, 0 not ours any more, -1 the same, but a copy that came before may have written
local call = redis.call
local value, owner = ARGV[3], ARGV[4]
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stands = call('GET', KEYS[1]) == (owner ~= '' and owner or value)
if owner ~= '' then
    stands = stands and tonumber(call('ZSCORE', KEYS[2], value) or 0) > now
end
if not stands then
    return ARGV[2] == '1' and -1 or 0
end
-- include write_keys
write_keys(3, 5)
return 1
