-- look_at: fragment before the scripts of what belongs to no job: the clock, and how one thing is looked at.
-- KEYS none of its own: what is looked at is named in the plan, and has the hash tag of the key that routes the script.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `call`, `micros`, `at` (the instant as text) and `look(l)`, which answers one instruction:
-- {'row', table, row}, {'begins', table, row, text}, {'rows', table}, {'first', list, most}, {'last', list, most},
-- {'described', list, table, most}, {'count', lists}, {'ahead', lists, list, text}, {'memory', epoch},
-- {'remembers', epoch, run id, microseconds}, {'log', log, below (0: none), most}, {'after', log, above, most}; both of these
-- answer oldest first.
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
  elseif what == 'begins' then
    return string.sub(call('HGET', l[2], l[3]) or '', 1, #l[4]) == l[4]
  elseif what == 'last' then
    return l[3] > 0 and call('ZRANGE', l[2], text(-l[3]), '-1', 'WITHSCORES') or {}
  elseif what == 'described' then                 -- each entry: text, number, the row of that name or false
    local first = call('ZRANGE', l[2], '0', text(l[4] - 1), 'WITHSCORES')
    local names, found = {}, {}
    for i = 1, #first, 2 do
      names[#names + 1] = first[i]
      found[#found + 1] = { first[i], first[i + 1], false }
    end
    -- Some at a time: Lua's stack is short.
    for from = 1, #names, 1000 do
      local rows = call('HMGET', l[3], unpack(names, from, math.min(from + 999, #names)))
      for i, row in ipairs(rows) do found[from + i - 1][3] = row end
    end
    return found
  elseif what == 'count' then
    local sum = 0
    for _, list in ipairs(l[2]) do sum = sum + call('ZCARD', list) end
    return sum
  elseif what == 'ahead' then
    local sum, place = 0, call('ZSCORE', l[3], l[4])
    for _, list in ipairs(l[2]) do
      sum = sum + (place and call('ZCOUNT', list, '-inf', '(' .. place) or call('ZCARD', list))
    end
    return sum
  elseif what == 'memory' or what == 'remembers' then
    local epoch = call('HMGET', l[2], 'id', 'doubted')
    local server = string.match(call('INFO', 'server'), 'run_id:(%w+)') or ''
    if what == 'memory' then
      return { server, epoch[1] or '', text(tonumber(epoch[2] or '0')) }
    end
    return server == l[3] and tonumber(epoch[2] or '0') * 1000 <= l[4]
  end
  if l[4] == 0 then
    return {}
  elseif what == 'after' then
    local first = entries_below(l[2], l[3] + 1)
    return call('LRANGE', l[2], text(first), text(first + l[4] - 1))
  end
  local last = (l[3] > 0 and entries_below(l[2], l[3]) or call('LLEN', l[2])) - 1
  return last < 0 and {} or call('LRANGE', l[2], text(math.max(0, last + 1 - l[4])), text(last))
end
