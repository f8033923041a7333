-- stock_look: what there is; asked to, counts it one by one.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 'count', or left out
-- -> {-1} no such item; {1, total, available, reserved, sold, limit, keep, open reservations, units in
--    them, units of users, most that one user has, units of nobody by name, by which request it was
--    begun}; what is not counted is 0
-- include stock_item
if not exists then
    return {-1}
end
if sweep(math.huge) then
    save()
end
local open, in_open, by_users, most, by_nobody = call('ZCARD', KEYS[4]), 0, 0, 0, 0
if ARGV[3] == 'count' then
    by_nobody = nobody
    for _, request in ipairs(call('ZRANGE', KEYS[4], 0, -1)) do
        local _, state, units, _, _, user = find(request)
        if state == 'o' then
            in_open = in_open + units
            by_nobody = by_nobody + (user == '' and units or 0)
        end
    end
    local fields = call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
        if string.sub(fields[i], 1, 1) == '=' then
            by_users = by_users + tonumber(fields[i + 1])
            most = math.max(most, tonumber(fields[i + 1]))
        end
    end
end
local rest = call('HMGET', KEYS[1], 'total', 'begun')
return {1, tonumber(rest[1]), available, reserved, sold, limit, keep, open, in_open, by_users, most,
        by_nobody, rest[2]}
