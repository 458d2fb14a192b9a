-- take_turn: a turn, if it is the asker's.
-- KEYS as in open_rotation.
-- ARGV[1] rotation  ARGV[2] type  ARGV[3] worker  ARGV[4] request  ARGV[5] waiter ('' for a final answer)
-- ARGV[6] how long it waits (microseconds)
-- Returns 'missing', 'rotation' or 'type'; 'granted', turn; 'over', token; or 'waiting', the present turn or '', earliest, how
-- many are ahead, reason.
-- Why: the same request has the same turn, so an answer lost in the network costs nothing.
local kind, worker, waiter = ARGV[2], ARGV[3], ARGV[5]
local r = open(ARGV[1])
if not r then return { 'missing', 'rotation' } end
if not r.place[kind] then return { 'missing', 'type' } end
expire(r)
-- A waiter that comes late for what it was promised has it still, if no other asked for it meanwhile.
if r.f.promised ~= waiter then lapse(r) end
local life = life_of(waiter)
if waiter ~= '' and any_is_silent() then
  call('HDEL', base .. 'silent', life .. ' ' .. r.name)
  silent = nil
end
local function leave()
  if waiter == '' then return end
  strike(r, kind, waiter)
  if r.f.promised == waiter then put(r, 'promised', '') end
end
local request = base .. 'k:' .. redis.sha1hex(r.name .. ' ' .. kind .. ' ' .. worker .. ' ' .. ARGV[4])
local had = call('GET', request)
if had then
  local answer = { 'over', had }
  if held(r) and r.f.turn == had then
    -- A worker may know of it from now on (return_turn).
    put(r, 'seen', '1')
    answer = { 'granted', turn(r) }
  end
  leave()
  settle(r)
  close()
  return answer
end
local function promised()
  return waiter ~= '' and waiter == r.f.promised and kind == r.f.promised_kind
end
local theirs = false
if not held(r) and promised() then
  -- Which may take it back.
  recovered(r)
  theirs = promised()
end
-- `behind_all` is how many there are more than wait before it, when it has just come.
local place, behind_all
if not theirs and waiter ~= '' then
  local mine, waits = queue(r, kind, life), known(r, life)
  local before = call('HGET', waits, waiter)
  local since = before and string.match(before, '^%d+ (%d+)') or text(now)
  call('HSET', waits, waiter, text(now + tonumber(ARGV[6])) .. ' ' .. since .. ' ' .. worker)
  place = before and call('ZSCORE', mine, waiter)
  if not place then
    call('ZADD', mine, text(call('INCR', base .. 'places')), waiter)
    behind_all = 1
    r.first[kind] = nil
    local is_known
    for _, other in ipairs(lives(r)) do is_known = is_known or other == life end
    if not is_known then
      call('SADD', base .. 'lives:' .. r.name, life)
      r.lives[#r.lives + 1] = life
    end
  end
  -- No waiter waits for longer than half a minute.
  for _, key in ipairs({ mine, waits, base .. 'lives:' .. r.name }) do call('PEXPIRE', key, '35000') end
end
if not theirs and not held(r) then
  -- Which may take a promise back.
  recovered(r)
  if (r.f.promised or '') == '' then
    local what, which = choose(r, kind)
    if what == 'now' and which == kind then
      local found = first(r, kind)
      theirs = not found or found == waiter
    end
  end
end
if theirs then
  local till = now + number(r, 'lease')
  -- As Ring::start: 1,024 a millisecond, by the microsecond.
  local clock = math.floor(now / 1000) * 1024 + math.floor(now % 1000 * 1024 / 1000)
  local token = text(math.max(number(r, 'token') + 1, clock))
  leave()
  put(r, 'promised', '')
  put(r, 'token', token)
  put(r, 'turn', token)
  put(r, 'kind', kind)
  put(r, 'worker', worker)
  put(r, 'request', ARGV[4])
  put(r, 'since', text(now))
  put(r, 'until', text(till))
  -- It lasts that long from each extension, whatever the rules become.
  put(r, 'ttl', r.f.lease)
  put(r, 'seen', '0')
  put(r, 'after', kind)
  put(r, 'last', text(now))
  put(r, 'next', '')
  put(r, 'not_before', '0')
  put(r, 'newest:' .. kind, text(now))
  local quota, starts = number(r, 'count:' .. kind), base .. 's:' .. r.name .. ':' .. kind
  if quota > 0 then
    call('LPUSH', starts, text(now))
    call('LTRIM', starts, '0', text(quota - 1))
  else
    call('DEL', starts)
  end
  call('SET', request, token, 'PX', text(math.ceil(number(r, 'lease') / 1000) + 60000))
  settle(r)
  close()
  return { 'granted', turn(r) }
end

-- What it waits for, and behind how many.
local at, why = earliest(r, kind)
local before = count(r, kind, place) - (behind_all or 0)
local ahead, comes_first = before, 1
for _, other in ipairs(order(r)) do
  if other == kind then
    comes_first = 0
  else
    ahead = ahead + math.min(count(r, other), before + comes_first)
  end
end
if held(r) then
  why = 'held'
elseif why == 'order' and r.f.skip == 'never' then
  local kinds = order(r)
  if kinds[1] ~= kind and not first(r, kinds[1]) then why = 'absent' end
end
local holder = turn(r)
settle(r)
close()
return { 'waiting', holder, text(at), ahead, why }
