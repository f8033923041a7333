-- stock_take: sells units, or sets them aside for a while.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 verb: t or r, 4 units, 5 request, 6 1: a
--      refusal is remembered too, 7 for how many ms (r), 8 user, or empty
-- -> left, if all went as usual; else {code, left}: 1 done, -1 no such item, -2 too few, -3 too many
--    for one user, -4 a user is needed, -5 the reservation has ended, -6 the request was for
--    something else, -7 longer than requests are remembered
--
-- The common case stands first: a user buys, nothing has run out, and nothing is unusual. What costs
-- time is every command, every function that is made and every number that becomes text.
local verb, units, request, user = ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[8]
if verb == 't' and user ~= '' then
    local call, mine = redis.call, '=' .. user
    local item = call('HMGET', KEYS[1], 'turn', 'due', 'limit', 'available', 'sold', mine, 'old')
    local time = call('TIME')
    local now = time[1] * 1000 + time[2] / 1000
    if item[4] and now < tonumber(item[1]) and (item[2] == '0' or now < tonumber(item[2])) then
        local limit, left, has = tonumber(item[3]), item[4] - units, (item[6] or 0) + units
        if left >= 0 and (limit == 0 or has <= limit) and call('HEXISTS', KEYS[2], request) == 0 and
            not (item[7] and call('HEXISTS', KEYS[3], request) == 1) then
            call('HSET', KEYS[2], request, 't - ' .. ARGV[4] .. ' ' .. left .. ' 0 ' .. user)
            call('HSET', KEYS[1], 'available', left, 'sold', item[5] + units, mine, has)
            return left
        end
    end
end
-- include stock_item
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
    elseif state == 'x' or
        (state == 'o' and (ends <= now or not call('ZSCORE', KEYS[4], request))) then
        return {-5, available}
    end
    return {1, old_left}
end
local has -- the user, so far
local function refusal()
    has = user ~= '' and tonumber(call('HGET', KEYS[1], '=' .. user) or 0)
    if span > keep then
        return -7
    elseif limit > 0 and not has then
        return -4
    elseif available < units then
        return -2
    elseif limit > 0 and has + units > limit then
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
        remember(request, verb, 'f', ARGV[4], code, 0, user)
    end
    if swept then
        save()
    end
    return {code, available}
end
available = available - units
if verb == 't' then
    sold = sold + units
    nobody = has and nobody or nobody + units
    remember(request, 't', '-', ARGV[4], available, 0, user)
    if has then
        save('=' .. user, has + units)
    else
        save()
    end
else
    ends = now + span
    call('ZADD', KEYS[4], ends, request)
    reserved = reserved + units
    due = due == 0 and ends or math.min(due, ends)
    local record = remember(request, 'r', 'o', ARGV[4], available, ends, user)
    if has then
        call('HINCRBY', KEYS[1], '-' .. user, units)
        save('~' .. request, record, '=' .. user, has + units)
    else
        save('~' .. request, record)
    end
end
return {1, available}
