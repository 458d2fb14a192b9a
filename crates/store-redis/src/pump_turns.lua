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
  expire(r)
  settle(r)
  -- The incarnations of dead processes are not looked at for ever.
  for _, life in ipairs(lives(r)) do
    if call('EXISTS', known(r, life)) == 0 then call('SREM', base .. 'lives:' .. name, life) end
  end
end
for _, name in ipairs(call('ZRANGE', base .. 'timers', '-inf', text(now), 'BYSCORE', 'LIMIT', '0', '64')) do act(name) end
-- Only then: what its own waiters let lapse just now must not make the calling incarnation silent.
for _, name in ipairs(hear(ARGV[1])) do act(name) end
-- Lost here, or by any other call since the last of these.
local lost = call('LRANGE', base .. 'lost', '0', '127')
if lost[1] then
  for i, part in ipairs(lost) do answer[3 + i] = part end
  call('LTRIM', base .. 'lost', #lost, '-1')
end
local next = call('ZRANGE', base .. 'timers', '0', '0', 'WITHSCORES')[2]
if next then
  answer[2] = text(tonumber(next))
  if tonumber(next) <= now then answer[3] = '1' end
end
if #lost == 128 then answer[3] = '1' end
close()
return answer
