-- write_fenced: writes keys unless somebody with a larger fence was here.
--
-- KEYS 1 the guard: the largest fence, then those to be written
-- ARGV 1 run id, 2 whether a copy may have come before, 3 fence, then for each key as in write_held
-- -> 1 written; the larger fence as {0, fence}
local call = redis.call
local fence = tonumber(ARGV[3])
local last = tonumber(call('GET', KEYS[1]) or 0)
if last > fence then
    return {0, last}
end
-- include write_keys
write_keys(2, 4)
if last < fence then
    call('SET', KEYS[1], ARGV[3])
end
return {1, fence}
