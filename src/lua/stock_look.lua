-- stock_look: what there is; asked to, counts it one by one.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 users, 5 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 'count', or left out
-- -> {-1} no such item; {1, total, available, reserved, sold, limit, keep, open reservations, units in
--    them, units of users, most that one user has, by which request it was begun}; what is not
--    counted is 0
-- include stock_item
if not exists then
    return {-1}
end
if sweep(math.huge) then
    save()
end
local open, in_open, by_users, most = call('ZCARD', KEYS[5]), 0, 0, 0
if ARGV[3] == 'count' then
    for _, request in ipairs(call('ZRANGE', KEYS[5], 0, -1)) do
        local _, _, units = find(request)
        in_open = in_open + (units or 0)
    end
    for _, count in ipairs(call('HVALS', KEYS[4])) do
        by_users = by_users + tonumber(count)
        most = math.max(most, tonumber(count))
    end
end
return {1, total, available, reserved, sold, limit, keep, open, in_open, by_users, most, begun}
