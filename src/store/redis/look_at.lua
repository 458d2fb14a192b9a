-- look_at: fragment before the scripts of what belongs to no job: the clock, and how one thing is looked at.
-- KEYS none of its own: what is looked at is named in the plan, and has the hash tag of the key that routes the script.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `call`, `micros`, `at` (the instant as text) and `look(l)`, which answers one instruction:
-- {'row', table, row}, {'rows', table}, {'first', list, most}, {'log', log, numbers, below (0: none), most}.
-- Why: a condition of a change is what was found by the same look before.
local call = redis.call
local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
local function text(n)
  return string.format('%.0f', n)
end
local at = text(micros)
local function look(l)
  local what = l[1]
  if what == 'row' then
    return call('HGET', l[2], l[3])
  elseif what == 'rows' then
    return call('HGETALL', l[2])
  elseif what == 'first' then
    return call('ZRANGE', l[2], '0', text(l[3] - 1), 'WITHSCORES')
  end
  -- The numbers that are kept are contiguous: number and place differ by as much for all.
  local kept, newest = call('LLEN', l[2]), tonumber(call('GET', l[3]) or '0')
  local last = kept - 1 - math.max(0, l[4] > 0 and newest + 1 - l[4] or 0)
  if last < 0 or l[5] == 0 then
    return {}
  end
  return call('LRANGE', l[2], text(math.max(0, last + 1 - l[5])), text(last))
end
