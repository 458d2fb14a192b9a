-- pump_turns: do what the clock alone has made due.
-- KEYS as in open_rotation.
-- ARGV[1] what the waiters of the calling node begin with
-- Returns now, when there is something to do next (0: unknown), 1 when there is more, then rotation and turn of each lost one.
-- Why: any node may call this at any time; what one call did, the next finds done.
local answer = { text(now), '0', '0' }
local function act(name)
  local r = open(name)
  if not r then
    call('ZREM', base .. 'timers', name)
    return
  end
  local before = turn(r)
  if expire(r) then
    answer[#answer + 1] = name
    answer[#answer + 1] = before
  end
  settle(r)
end
for _, name in ipairs(call('ZRANGE', base .. 'timers', '-inf', text(now), 'BYSCORE', 'LIMIT', '0', '64')) do act(name) end
-- Only then: what its own waiters let lapse just now must not make a life silent that calls.
for _, name in ipairs(hear(ARGV[1])) do act(name) end
local next = call('ZRANGE', base .. 'timers', '0', '0', 'WITHSCORES')[2]
if next then
  answer[2] = text(tonumber(next))
  if tonumber(next) <= now then answer[3] = '1' end
end
close()
return answer
