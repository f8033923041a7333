-- Pasted into acquire, release and break, behind mint: the lock, which nobody has a right to, goes to
-- the first waiter that lives, who is `heir` then (and `heir_lease`, `heir_owner`). Needs `kept`, the
-- text of the fence, `stays`: if that value is the first, or nobody waits, nothing is done; and
-- `proposed`: on a quorum, where a fence is never below the ticket of who has it.
--
-- A waiter is a member of the queue, its value, with the score by which it is served, and a record
-- among the notes: 'n alive-until lease range since owner'. Without either it does not wait. It lives
-- if it was heard from lately and its client is subscribed. That is asked before anything is
-- decided: what PUBLISH counts includes others, and is replicated. Who may not ask goes by the time
-- alone. The same for a waiter whose n is 0: its server denies it messages, and it asks by itself.
-- Those that do not live are taken out, at most a thousand at a time.
--
-- A waiter with an owner lets in the others of that owner, as many as are among the first hundred; on
-- a quorum those that stand right behind it, since who joins waits for earlier tickets.
--
-- Nothing here fails before the lock has changed hands, be a key of another type or a permission
-- missing: a release must succeed. Those who wait find out with their next check.
local heir, heir_lease, heir_owner
for _ = 1, 1000 do
    local first = redis.pcall('ZRANGEBYSCORE', KEYS[2], '0', '+inf', 'LIMIT', '0', '2')
    heir = first[1]
    if not heir or heir == stays then
        break
    end
    local score = proposed and tonumber(call('ZSCORE', KEYS[2], heir)) or 0
    local n, lease, range, owner, channel = look_up(heir)
    if n == false then -- an error: it may well wait
        heir = nil
        break
    end
    call('ZREM', KEYS[2], heir)
    redis.pcall('HDEL', KEYS[4], heir)
    if n then
        heir_lease, heir_owner = tonumber(lease), owner ~= '' and owner or nil
        if score > clock then
            clock = score
        end
        call('SET', KEYS[1], heir_owner or heir, 'PX', lease)
        if heir_owner then
            call('DEL', KEYS[5])
            call('ZADD', KEYS[5], now + lease, heir)
            call('PEXPIRE', KEYS[5], lease)
        end
        local copy = range == '0' and 1 or 0 -- gets a new fence here, and counts back from the next
        local fence, top = mint(kept, range + copy, heir_lease, #first - 1)
        local last = fence + copy + range - 1
        if range ~= '1' then
            top = string.format('%.0f', fence + copy)
        end
        if n ~= '0' then
            redis.pcall('PUBLISH', channel, 'g ' .. (string.match(heir, ':(%d+)@') or 0) .. ' ' .. n
                        .. ' ' .. top .. ' ' .. lease .. (first[2] and ' 1' or ' 0'))
        end
        announce(kept, 'granted', heir, last, heir_lease)
        if heir_owner and first[2] then
            heir_lease = invite(heir_owner, last)
        end
        break
    end
    heir = nil
end
