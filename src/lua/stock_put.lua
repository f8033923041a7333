-- stock_put: takes back what was sold, or adds new units.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 verb: p or n, 4 units, 5 request, 6 1: a
--      refusal is remembered too, 7 how many there may be in all, 8 user, or empty
-- -> {code, left}: 1 done, -1 no such item, -6 the request was for something else, -9 more than were
--    sold to that user, or to nobody by name, or than there may be
local verb, units, request, user = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[8]
-- include stock_item
if not exists then
    return {-1, 0}
end
local old_verb, state, old_units, old_left, _, old_user = find(request)
if old_verb then
    if old_verb ~= verb or old_units ~= units or old_user ~= user then
        return {-6, available}
    elseif state == 'f' then
        return {old_left, available}
    end
    return {1, old_left}
end
local total = tonumber(call('HGET', KEYS[1], 'total'))
local there = nobody
if verb == 'n' then
    there = tonumber(ARGV[7]) - total
elseif user ~= '' then
    local has = call('HMGET', KEYS[1], '=' .. user, '-' .. user)
    there = math.min(sold - nobody, (has[1] or 0) - (has[2] or 0))
end
if units > there then
    if ARGV[2] == '1' or ARGV[6] == '1' then
        remember(request, verb, 'f', units, -9, 0, user)
    end
    return {-9, available}
end
available = available + units
if verb == 'n' then
    call('HSET', KEYS[1], 'total', total + units)
else
    sold = sold - units
    if user ~= '' then
        add('=' .. user, -units)
    else
        nobody = nobody - units
    end
end
remember(request, verb, '-', units, available, 0, user)
save()
return {1, available}
