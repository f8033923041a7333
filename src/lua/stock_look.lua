-- stock_look: what there is; asked to, counts it one by one, a page with each call.
--
-- KEYS 1 item, 2 requests, 3 old requests, 4 open reservations
-- ARGV 1 run id, 2 whether a copy may have come before, 3 'count', or left out, 4 at which place
--      among the open reservations and 5 at which cursor among the fields of the item to go on; 0 to
--      begin, -1: those are counted
-- -> {-1} no such item; {1, total, available, reserved, sold, limit, keep, open reservations, and of
--    this page: units in reservations, units of users, most that one user has, units of nobody by
--    name; 4 and 5 of the next page; turn and number of requests; by which request it was begun};
--    what is not counted is 0
--
-- Pages are of one moment if none of the numbers about the whole item differs: each change adds a
-- request, or turns requests over, or ends a reservation; and only a new request makes one.
local request = ''
-- include stock_item
if not exists then
    return {-1}
end
if sweep(math.huge) then
    save()
end
local in_open, by_users, most, by_nobody, requests = 0, 0, 0, 0, 0
local place, cursor = -1, -1

local function count_reservations()
    local page = call('ZRANGE', KEYS[4], place, place + 1023)
    for _, one in ipairs(page) do
        local _, state, units, _, _, user = find(one)
        if state == 'o' then
            in_open = in_open + units
            by_nobody = by_nobody + (user == '' and units or 0)
        end
    end
    place = #page == 1024 and place + 1024 or -1
end

local function count_users()
    local page = call('HSCAN', KEYS[1], ARGV[5], 'COUNT', 4096)
    local fields = page[2]
    for i = 1, #fields, 2 do
        if string.sub(fields[i], 1, 1) == '=' then
            by_users = by_users + tonumber(fields[i + 1])
            most = math.max(most, tonumber(fields[i + 1]))
        end
    end
    cursor = page[1] == '0' and -1 or tonumber(page[1])
end

if ARGV[3] == 'count' then
    place, requests = tonumber(ARGV[4]), call('HLEN', KEYS[2])
    by_nobody = place == 0 and nobody or 0
    if place >= 0 then
        count_reservations()
    end
    if ARGV[5] ~= '-1' then
        count_users()
    end
end
local rest = call('HMGET', KEYS[1], 'total', 'begun')
return {1, tonumber(rest[1]), available, reserved, sold, limit, keep, call('ZCARD', KEYS[4]), in_open,
        by_users, most, by_nobody, place, cursor, turn, requests, rest[2]}
