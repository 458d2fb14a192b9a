-- commit_plan: if what was read is unchanged, carry out a plan; else answer what is newest.
-- KEYS one or more of the plan's, which route it on a cluster; all of a plan have one hash tag.
-- ARGV[last] plan  MessagePack: { checks, writes }, each of the instructions below. Instants: milliseconds, tokens as text.
-- Returns guard, '1' and the instant of the commit in microseconds, or '0', that instant, and for each record or lease that was
-- checked its text (false when there is none) and the milliseconds that are left of it; '2' and that instant when all holds but that a
-- list is empty.
-- Why: rules are decided by the caller, and hold because nothing that they looked at has changed. This script knows none of
-- them. It adds only what the caller cannot know: the instant, and whether the store may be believed. Checks come first and
-- only read, because Redis takes nothing back.
local call = redis.call
local time = call('TIME')
local micros = time[1] * 1000000 + time[2]
local at = string.format('%.0f', micros)
local plan = cmsgpack.unpack(ARGV[#ARGV])
local holds = true
for _, c in ipairs(plan[1]) do
  local what = c[1]
  if what == 'is' then                          -- key, how its text begins ('': there is none)
    local begins = c[3]
    holds = call('GETRANGE', c[2], '0', begins == '' and '0' or #begins - 1) == begins
  elseif what == 'within' then                  -- from, before: the instant
    local now = math.floor(micros / 1000)
    holds = c[2] <= now and now < c[3]
  elseif what == 'unlisted' then                -- key of a list, checked last: nothing stands in it
    if call('EXISTS', c[2]) == 1 then return { guard, '2', at } end
  else                                          -- 'calm': leases that the store forgot have run out
    holds = quarantine == 0
  end
  if not holds then break end
end
if not holds then
  local answer = { guard, '0', at }
  for _, c in ipairs(plan[1]) do
    if c[1] == 'is' then
      answer[#answer + 1] = call('GET', c[2])
      answer[#answer + 1] = call('PTTL', c[2])
    end
  end
  return answer
end
for _, w in ipairs(plan[2]) do
  local op = w[1]
  if op == 'lease' then                         -- key, text, ttl (0: as long as the present one lasts)
    if w[4] == 0 then
      call('SET', w[2], w[3], 'KEEPTTL')
    else
      call('SET', w[2], w[3], 'PX', w[4])
    end
  elseif op == 'put' then                       -- key, version, body, milliseconds until it goes by itself (0: it stays)
    local text = w[3] .. ' ' .. at .. '\n' .. w[4]
    if w[5] == 0 then call('SET', w[2], text) else call('SET', w[2], text, 'PX', w[5]) end
  elseif op == 'tell' then                      -- channel, members of a JSON object, body, lease of the record
    call('PUBLISH', w[2], '{' .. w[3] .. ',"at":' .. at .. ',"record":' .. w[4] .. ',"lease":'
      .. (call('GET', w[5]) or 'null') .. ',"left":' .. call('PTTL', w[5]) .. '}')
  elseif op == 'log' then                       -- as append_log says
    append_log(w, math.floor(micros / 1000))
  else                                          -- a command of Redis as it stands
    call(unpack(w))
  end
end
return { guard, '1', at }
