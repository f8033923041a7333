-- stock_set: says how many units there are in all.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 units, 4 request, 5 limit per user (0 as it
--      is, -1 none), 6 keep in ms (0 as it is), 7 keep of a new item, 8 to begin again: by which
--      request it was begun so far, or empty if it was not; otherwise left out
-- -> {code, left}: 1 done, -2 more are sold or reserved, -10 somebody else has begun it again
local units, request, again = tonumber(ARGV[3]), ARGV[4], ARGV[8]
-- include stock_item
local begun = call('HGET', KEYS[1], 'begun')
local verb, state, _, left = find(request)
if verb or begun == request then
    return {state == 'f' and left or 1, available or 0} -- also if it was deleted since
end
if again and (begun or '') ~= again then
    return {-10, available or 0}
end
if again or not exists then
    call('UNLINK', KEYS[1], KEYS[4])
    if again then
        call('UNLINK', KEYS[2], KEYS[3])
    elseif call('EXISTS', KEYS[3]) == 1 then
        call('HSET', KEYS[1], 'old', 1) -- of an item that was deleted; they do not count again
    end
    reserved, sold, nobody, due = 0, 0, 0, 0
    limit, keep = limit or 0, keep or tonumber(ARGV[7])
    turn = now + keep
    call('HSET', KEYS[1], 'begun', request)
else
    local swept = sweep(math.huge)
    if units < reserved + sold then
        if ARGV[2] == '1' then
            remember(request, 's', 'f', units, -2, 0, '')
        end
        if swept then
            save()
        end
        return {-2, available}
    end
end
available = units - reserved - sold
if ARGV[5] ~= '0' then
    limit = math.max(tonumber(ARGV[5]), 0)
end
if ARGV[6] ~= '0' then
    keep = tonumber(ARGV[6])
    turn = next_turn(math.min(turn, now + keep))
end
remember(request, 's', '-', units, available, 0, '')
call('PEXPIREAT', KEYS[2], turn + keep)
call('HSET', KEYS[1], 'total', units, 'limit', limit, 'keep', keep, 'turn', turn)
save()
return {1, available}
