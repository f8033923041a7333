-- write_fenced: writes keys unless somebody with a larger fence was here.
--
-- KEYS 1 the guard: the largest fence, 2 marks of calls, then those to be written
-- ARGV 1 run id, 2 whether a copy may have come before, 3 which call this is, 4 fence, then for each
--      key as in write_held
-- -> {1, fence} written; {0, fence} that larger one was here; {-1, fence} the same, but a copy that
--    came before may have written
local call = redis.call
local late, fence = KEYS[2], tonumber(ARGV[4])
local last = tonumber(call('GET', KEYS[1]) or 0)
if last > fence then
    return {ARGV[2] == '1' and -1 or 0, last}
end
-- include write_keys
write_keys(3, 5)
if last < fence then
    call('SET', KEYS[1], ARGV[4])
end
return {1, fence}
