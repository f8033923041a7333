-- stock_settle: confirms or cancels a reservation.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 c confirm, x cancel, 4 request
-- -> {code, left}: 1 it is so now, -1 no such item, -2 cancel: it is sold, -5 confirm: it has ended,
--    -6 it was not a reservation, -8 nothing is known of it
local wanted, request = ARGV[3], ARGV[4]
-- include stock_item
if not exists then
    return {-1, 0}
end
local verb, state, units, left, ends, user = find(request)
if not verb or (verb == 'r' and state == 'f') then
    if wanted == 'x' and not verb then
        remember(request, 'r', 'x', 0, 0, 0, '') -- should it be on its way, it comes too late
    end
    return {-8, available}
elseif verb ~= 'r' then
    return {-6, available}
elseif state == 'o' then
    if wanted == 'x' or ends <= now then
        give_back(request, units, left, ends, user)
        state = 'x'
    elseif call('ZREM', KEYS[4], request) == 0 then
        state = 'x' -- of an item that was deleted since
    else
        if user ~= '' then
            add('-' .. user, -units)
        else
            nobody = nobody + units
        end
        reserved, sold = reserved - units, sold + units
        remember(request, 'r', 'c', units, left, ends, user)
        call('HDEL', KEYS[1], '~' .. request)
        state = 'c'
    end
    save()
end
if state ~= wanted then
    return {wanted == 'c' and -5 or -2, available}
end
return {units == 0 and -8 or 1, available}
