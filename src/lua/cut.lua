-- Pasted into the scripts that return or publish what others wrote, who may have written megabytes. No
-- value of ours is longer than 1024 bytes; of one that is, the first 1024 are given, and '...': so
-- whatever has 1027 bytes was cut.
local function cut(text)
    return #text > 1024 and string.sub(text, 1, 1024) .. '...' or text
end
