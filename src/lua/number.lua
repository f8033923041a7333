-- Pasted into scripts that read numbers which this library has written: fences, marks, tickets, notes.
-- The number that `text` begins with; 0: none, or one that no fence can have, which another program
-- has put there. What follows from one below 9e15, the year 2255 in microseconds, is still a whole
-- number that Lua can count.
local function number_in(text)
    local number = tonumber(type(text) == 'string' and string.match(text, '^%d+') or 0)
    return number < 9e15 and number or 0
end
