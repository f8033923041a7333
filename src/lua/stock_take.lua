-- stock_take: sells units, or sets them aside for a while.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 users, 5 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 verb: t or r, 4 units, 5 request, 6 1: a
--      refusal is remembered too, 7 for how many ms (r), 8 user, or empty
-- -> {code, left}: 1 done, -1 no such item, -2 too few, -3 too many for one user, -4 a user is needed,
--    -5 the reservation has ended, -6 the request was for something else, -7 longer than requests are
--    remembered
-- include stock_item
local verb, units, request, user = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[8]
local span = tonumber(ARGV[7])
if not exists then
    return {-1, 0}
end
local old_verb, state, old_units, old_left, ends, old_user = find(request)
if old_verb then
    if old_verb ~= verb or (old_units > 0 and (old_units ~= units or old_user ~= user)) then
        return {-6, available}
    elseif state == 'f' then
        return {old_left, available}
    elseif state == 'x' or (state == 'o' and ends <= now) then
        return {-5, available}
    end
    return {1, old_left}
end
local function refusal()
    if span > keep then
        return -7
    elseif limit > 0 and user == '' then
        return -4
    elseif available < units then
        return -2
    elseif limit > 0 and tonumber(call('HGET', KEYS[4], user) or 0) + units > limit then
        return -3
    end
end
local swept = sweep(units)
local code = refusal()
if code == -3 and sweep(math.huge) then
    code = refusal() -- what the user has may have been among the rest
end
if code then
    -- Who hears of a refusal must not be sold something later, by a copy that was late.
    if ARGV[2] == '1' or ARGV[6] == '1' then
        remember(request, verb, 'f', units, code, 0, user)
    end
    if swept then
        save()
    end
    return {code, available}
end
available = available - units
ends = verb == 'r' and now + span or 0
if verb == 'r' then
    call('ZADD', KEYS[5], ends, request)
    reserved = reserved + units
    due = due == 0 and ends or math.min(due, ends)
else
    sold = sold + units
    nobody = user == '' and nobody + units or nobody
end
if user ~= '' then
    call('HINCRBY', KEYS[4], user, units)
    if verb == 'r' then
        call('HINCRBY', KEYS[4], '\0' .. user, units)
    end
end
remember(request, verb, verb == 'r' and 'o' or '-', units, available, ends, user)
save()
return {1, available}
