-- append_log: fragment before scripts that add to a log; needs find_entry.
-- KEYS none of its own.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `append_log(w, ms)`, which carries out {'log', log, numbers, the inside of a JSON object, how many
-- entries are kept, folds, key ('': none), within, how many keys are kept, how often it happened, what it says} at that instant, in
-- milliseconds.
-- Why: numbers and instants are the store's, so only the store can give them. What was written under the same key less than
-- `within` milliseconds ago and says the same is counted in its own place: `folds` knows the newest entry of each key, and what it says.
local function append_log(w, ms)
  local function text(n)
    return string.format('%.0f', n)
  end
  local newest = w[7] ~= '' and redis.call('HGET', w[6], w[7])
  local known, said = string.match(newest or '', '^(%d+) (.*)$')
  if known and said == w[11] then
    local place = text(entries_below(w[2], tonumber(known)))
    local before = redis.call('LINDEX', w[2], place) or ''
    local id, at = string.match(before, '"id":(%d+),"at":(%d+)')
    if id == known and ms >= tonumber(at) and ms - tonumber(at) <= w[8] then
      local count = tonumber(string.match(before, '"count":(%d+)') or '1') + w[10]
      redis.call('LSET', w[2], place, '{"id":' .. id .. ',"at":' .. at .. ',"count":' .. text(count) .. ',"until":' .. text(ms)
        .. ',' .. w[4] .. '}')
      return
    end
  end
  local id = text(redis.call('INCR', w[3]))
  redis.call('RPUSH', w[2], '{"id":' .. id .. ',"at":' .. text(ms) .. ',"count":' .. text(w[10]) .. ',' .. w[4] .. '}')
  redis.call('LTRIM', w[2], text(-w[5]), '-1')
  if w[7] ~= '' then
    if redis.call('HLEN', w[6]) >= w[9] then redis.call('DEL', w[6]) end
    redis.call('HSET', w[6], w[7], id .. ' ' .. w[11])
  end
end
