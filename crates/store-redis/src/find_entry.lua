-- find_entry: fragment before scripts that look at a log or add to it.
-- KEYS none of its own.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `entries_below(log, id)`: how many entries of a log have a smaller number, which is the place
-- of the first that has not.
-- Why: several logs share one counter, so the numbers in one of them only grow. They are searched by halves.
local function entries_below(log, id)
  local low, high = 0, redis.call('LLEN', log)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = redis.call('LINDEX', log, string.format('%.0f', middle))
    if tonumber(string.match(entry, '"id":(%d+)')) < id then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end
