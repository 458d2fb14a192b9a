-- change_records: if what was looked at is unchanged, carry out a plan.
-- KEYS[1] any key of the tag under which all of it lies, which routes it on a cluster
-- ARGV[1] plan  MessagePack: { from, before, checks, writes, done, refused }. The instant must be in [from, before),
-- microseconds; before 0: any. Each check is { a look of look_at, what it must find }: a text, a list of texts, true, or false
-- for nothing. `done` is looked at behind the writes, `refused` if there were none.
-- Returns '1' or '0', the instant in microseconds, and what was found.
-- Why: rules are decided by the caller, and hold because nothing that they looked at has changed. This script knows none of
-- them. Checks come first and only read, because Redis takes nothing back.
local plan = cmsgpack.unpack(ARGV[1])
local function holds(found, wanted)
  if type(wanted) ~= 'table' then
    return found == wanted
  end
  -- A list is found with its numbers.
  if #found ~= 2 * #wanted then return false end
  for i, entry in ipairs(wanted) do
    if found[2 * i - 1] ~= entry then return false end
  end
  return true
end
local function answer(done, looks)
  local found = { done, at }
  for i, l in ipairs(looks) do found[i + 2] = look(l) end
  return found
end
if plan[2] > 0 and (micros < plan[1] or micros >= plan[2]) then
  return answer('0', plan[6])
end
for _, check in ipairs(plan[3]) do
  if check[1][1] == 'none' then                   -- table: it has no row
    if call('EXISTS', check[1][2]) == 1 then return answer('0', plan[6]) end
  elseif not holds(look(check[1]), check[2]) then
    return answer('0', plan[6])
  end
end
for _, w in ipairs(plan[4]) do
  local op = w[1]
  if op == 'log' then                             -- as append_log says
    append_log(w, math.floor(micros / 1000))
  elseif op == 'join' then                        -- list, counter, text
    if not call('ZSCORE', w[2], w[4]) then call('ZADD', w[2], text(call('INCR', w[3])), w[4]) end
  elseif op == 'entry' then                       -- log, numbers, the number, a JSON object: as another store has it
    call('RPUSH', w[2], w[5])
    call('SET', w[3], w[4])
  elseif op == 'tell' then                        -- channel, text
    call('PUBLISH', w[2], w[3])
  else                                            -- a command of Redis as it stands
    call(unpack(w))
  end
end
return answer('1', plan[5])
