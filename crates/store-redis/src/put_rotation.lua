-- put_rotation: make a rotation, or change its rules.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] rules as JSON, only to be read back  ARGV[3] min gap  ARGV[4] lease  ARGV[5] skip (absent or never)
-- ARGV[6..] of each type: name, gap, count (0: no quota), span; durations in microseconds
-- ARGV[last] as in note_act
-- Returns 1.
-- Why: the worker that has the turn keeps it, and a waiter for a type that is gone learns so at once.
local name = ARGV[1]
-- One that is new in a store that was emptied a moment ago may be an old one, and a worker may have its turn.
local emptied
if call('EXISTS', base .. 'r:' .. name) == 0 then
  local known = call('HMGET', KEYS[3], 'id', 'doubted')
  emptied = known[1] and tonumber(known[2] or '0') * 1000 or now
end
call('ZADD', base .. 'names', '0', name)
call('HSET', base .. 'rules', name, ARGV[2])
local old = open(name)
local types, is = {}, {}
for i = 6, #ARGV - 1, 4 do
  types[#types + 1] = ARGV[i]
  is[ARGV[i]] = true
  call('HSET', base .. 'r:' .. name, 'gap:' .. ARGV[i], ARGV[i + 1], 'count:' .. ARGV[i], ARGV[i + 2],
    'span:' .. ARGV[i], ARGV[i + 3])
end
call('HSET', base .. 'r:' .. name, 'types', table.concat(types, ' '), 'min_gap', ARGV[3], 'lease', ARGV[4], 'skip',
  ARGV[5])
if old then
  local after, at = '', old.place[old.f.after or '']
  for back = 0, #old.types - 1 do
    local kind = at and old.types[(at - 1 - back) % #old.types + 1]
    if after == '' and kind and is[kind] then after = kind end
  end
  call('HSET', base .. 'r:' .. name, 'after', after, 'next', is[old.f.next or ''] and old.f.next or '')
  for _, kind in ipairs(old.types) do
    if not is[kind] then
      for _, life in ipairs(lives(old)) do
        for _, waiter in ipairs(call('ZRANGE', queue(old, kind, life), '0', '-1')) do
          woken[#woken + 1] = waiter
          call('HDEL', known(old, life), waiter)
        end
        call('DEL', queue(old, kind, life))
      end
      call('DEL', base .. 's:' .. name .. ':' .. kind)
      call('HDEL', base .. 'r:' .. name, 'gap:' .. kind, 'count:' .. kind, 'span:' .. kind, 'newest:' .. kind)
    end
  end
  -- Under other rules it may be another waiter's turn, or no turn yet.
  call('HSET', base .. 'r:' .. name, 'promised', '')
end
local r = open(name)
if emptied then
  r.looked = true
  doubt(r, string.match(call('INFO', 'server'), 'run_id:(%w+)') or '', emptied)
end
expire(r)
settle(r)
close()
note_act(now)
return 1
