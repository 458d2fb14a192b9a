-- append_log: fragment before scripts that add to a log.
-- KEYS none of its own.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `append_log(w, ms)`, which carries out {'log', log, numbers, the inside of a JSON object, how many
-- entries are kept} at that instant, in milliseconds.
-- Why: numbers are contiguous and instants are the store's, so only the store can give them.
local function append_log(w, ms)
  local function text(n)
    return string.format('%.0f', n)
  end
  local id = redis.call('INCR', w[3])
  redis.call('RPUSH', w[2], '{"id":' .. text(id) .. ',"at":' .. text(ms) .. ',' .. w[4] .. '}')
  redis.call('LTRIM', w[2], text(-w[5]), '-1')
end
