-- stock_delete: deletes an item.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 by which request the item was begun, 4 1:
--      although reservations are open
-- -> {code, left}: 1 it is gone, -10 somebody has begun it again, -11 reservations are open
--
-- The logs stay for as long as requests are remembered: a late copy of a request that was answered
-- finds it there, also if the item is set again. So a copy of the set that made the item does not
-- bring it back, and a copy of this call does not find the request by which another was begun.
local request = ''
-- include stock_item
if not exists then
    return {1, 0}
end
if call('HGET', KEYS[1], 'begun') ~= ARGV[3] then
    return {-10, available}
end
if ARGV[4] ~= '1' and call('ZCOUNT', KEYS[4], '(' .. now, '+inf') > 0 then
    return {-11, available}
end
call('PEXPIRE', KEYS[2], keep)
call('PEXPIRE', KEYS[3], keep)
call('UNLINK', KEYS[1], KEYS[4])
return {1, 0}
