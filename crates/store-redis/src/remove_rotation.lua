-- remove_rotation: a rotation goes with its turn, its past turns, and the places of who waits.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] '1': also while it is held or waited for  ARGV[3] as in note_act
-- Returns 'missing', 'kept' (then nothing was done) or 'done'; then the turn on one line or '', and how many wait.
-- Why: who waits is woken and finds it gone; who has the turn finds it gone when it is extended or passed.
local name = ARGV[1]
local r = open(name)
if not r then return { 'missing', '', 0 } end
expire(r)
local waits = 0
for _, kind in ipairs(r.types) do waits = waits + count(r, kind) end
local present = turn(r)
if ARGV[2] ~= '1' and (present ~= '' or waits > 0) then
  settle(r)
  close()
  return { 'kept', present, waits }
end
for _, kind in ipairs(r.types) do
  for _, life in ipairs(lives(r)) do
    for _, waiter in ipairs(call('ZRANGE', queue(r, kind, life), '0', '-1')) do woken[#woken + 1] = waiter end
    call('DEL', queue(r, kind, life))
  end
  call('DEL', base .. 's:' .. name .. ':' .. kind)
end
for _, life in ipairs(lives(r)) do
  call('DEL', known(r, life))
  call('HDEL', base .. 'silent', life .. ' ' .. name)
end
call('DEL', base .. 'r:' .. name, base .. 'past:' .. name, base .. 'lives:' .. name)
call('ZREM', base .. 'names', name)
call('HDEL', base .. 'rules', name)
call('ZREM', base .. 'timers', name)
close()
note_act(now)
return { 'done', present, waits }
