-- open_rotation: fragment before every script of rotations: the clock, one rotation, and whose turn it is.
-- KEYS[1] base  what every key of rotations begins with (keys.rs)  KEYS[2] channel on which waiters are woken
-- ARGV none of its own.
-- Returns nothing by itself; leaves `now`, `open(name)` and what can be done with the rotation `r` that it answers: `expire(r)`,
-- `finish(r, ending, ended)`, `own`, `order`, `earliest`, `firsts`, `choose`, `leave`, `lapse`, `settle(r)`, which every script
-- calls that changed anything, and `close()`, which wakes who was promised a turn.
-- Why: these are the decisions of domain::rotation::Ring; a rotation is read once, changed in `r.put`, and written once.
-- Which keys a call touches depends on what is found; all of them begin with KEYS[1] and have its hash tag.
local base, call = KEYS[1], redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local woken = {}

local function text(n)
  return string.format('%.0f', n)
end
local function life_of(waiter)
  return string.match(waiter, '^(.*)/[^/]*$') or waiter
end

-- A rotation: its hash, its types in order and their places.
local function open(name)
  local fields = call('HGETALL', base .. 'r:' .. name)
  if #fields == 0 then return nil end
  local r = { name = name, f = {}, put = {}, types = {}, place = {} }
  for i = 1, #fields, 2 do r.f[fields[i]] = fields[i + 1] end
  for kind in string.gmatch(r.f.types, '%S+') do
    r.types[#r.types + 1] = kind
    r.place[kind] = #r.types
  end
  return r
end
local function put(r, field, value)
  r.f[field] = value
  r.put[field] = value
end
local function number(r, field)
  return tonumber(r.f[field] or '0')
end
local function held(r)
  return (r.f.turn or '') ~= ''
end
-- The present turn on one line (parse.rs), or ''.
local function turn(r)
  if not held(r) then return '' end
  return table.concat({ r.f.turn, r.f.kind, r.f.worker, r.f.request, r.f.since, r.f['until'] }, ' ')
end

-- The turn ends: it is remembered and counted.
local function finish(r, ending, ended)
  local past = table.concat({ r.f.turn, r.f.kind, r.f.worker, r.f.since, ended, ending }, ' ')
  call('LPUSH', base .. 'past:' .. r.name, past)
  call('LTRIM', base .. 'past:' .. r.name, '0', '199')
  local field = ending .. ':' .. r.f.kind
  put(r, field, text(number(r, field) + 1))
  put(r, 'turn', '')
end
local function expire(r)
  if not held(r) or number(r, 'until') > now then return false end
  finish(r, 'lost', r.f['until'])
  return true
end

-- The types in the order in which their turns come.
local function order(r)
  local first = r.place[r.f.next or ''] or (r.place[r.f.after or ''] or 0) + 1
  local kinds = {}
  for i = 0, #r.types - 1 do kinds[i + 1] = r.types[(first - 1 + i) % #r.types + 1] end
  return kinds
end
-- The first instant at which a type could start if nobody came first, and why not before ('order': now).
local function earliest(r, kind)
  local at, why = now, 'order'
  local function after(last, gap, reason)
    if last > 0 and gap > 0 and last + gap > at then at, why = last + gap, reason end
  end
  after(number(r, 'last'), number(r, 'min_gap'), 'gap')
  if number(r, 'not_before') > at then at, why = number(r, 'not_before'), 'not_before' end
  after(number(r, 'newest:' .. kind), number(r, 'gap:' .. kind), 'gap')
  local count = number(r, 'count:' .. kind)
  if count > 0 then
    local counted = call('LINDEX', base .. 's:' .. r.name .. ':' .. kind, text(count - 1))
    if counted then after(tonumber(counted), number(r, 'span:' .. kind), 'quota') end
  end
  return at, why
end

local silent
local function is_silent(r, waiter)
  if not silent then
    silent = {}
    local all = call('HGETALL', base .. 'silent')
    for i = 1, #all, 2 do silent[all[i]] = tonumber(all[i + 1]) end
  end
  local till = silent[life_of(waiter) .. ' ' .. r.name]
  return till and till > now
end
local function strike(r, kind, waiter)
  call('ZREM', base .. 'q:' .. r.name .. ':' .. kind, waiter)
  call('HDEL', base .. 'w:' .. r.name, waiter)
end
-- The first who waits for a type: those before it whose life is silent are passed over, those whose time is over struck out.
local function first(r, kind)
  local from, to = 0, 0
  while true do
    local some = call('ZRANGE', base .. 'q:' .. r.name .. ':' .. kind, text(from), text(to))
    if not some[1] then return nil end
    for _, waiter in ipairs(some) do
      if is_silent(r, waiter) then
        from = from + 1
      else
        local till = string.match(call('HGET', base .. 'w:' .. r.name, waiter) or '', '^(%d+)')
        if till and tonumber(till) > now then return waiter end
        strike(r, kind, waiter)
      end
    end
    to = from + 63
  end
end
local function firsts(r)
  local found = {}
  for _, kind in ipairs(r.types) do found[kind] = first(r, kind) end
  return found
end
-- Whose turn it is when those in `waits` wait, and whoever asks for `also`: 'now', its type; or 'later', until when, as far
-- as that is known.
local function choose(r, waits, also)
  local kinds = order(r)
  local soonest
  for i, kind in ipairs(kinds) do
    if r.f.skip == 'never' and i > 1 then break end
    if waits[kind] or kind == also then
      local at, why = earliest(r, kind)
      if why == 'order' then return 'now', kind end
      if not soonest or at < soonest then soonest = at end
    end
  end
  return 'later', soonest
end

-- A life of a node is heard of in one rotation.
local function hear(life, rotation)
  call('HDEL', base .. 'silent', life .. ' ' .. rotation)
  silent = nil
end
-- A waiter waits no more, and makes way if it was promised the turn.
local function leave(r, waiter)
  for _, kind in ipairs(r.types) do strike(r, kind, waiter) end
  if r.f.promised == waiter then put(r, 'promised', '') end
end
-- A promise that was not taken up in time lapses with the place of its waiter, and its life is silent: for no longer than
-- anybody may wait.
local function lapse(r)
  local waiter = r.f.promised or ''
  if waiter == '' or number(r, 'promised_until') > now then return end
  strike(r, r.f.promised_kind, waiter)
  call('HSET', base .. 'silent', life_of(waiter) .. ' ' .. r.name, text(now + 35000000))
  call('PEXPIRE', base .. 'silent', '120000')
  silent = nil
  put(r, 'promised', '')
end

-- Promises the turn to whom it belongs, and writes down what is left.
local function settle(r)
  lapse(r)
  local due
  if (r.f.promised or '') ~= '' then
    due = number(r, 'promised_until')
  elseif held(r) then
    due = number(r, 'until')
  else
    local waits = firsts(r)
    local what, which = choose(r, waits)
    if what == 'now' then
      due = now + 100000
      put(r, 'promised', waits[which])
      put(r, 'promised_kind', which)
      put(r, 'promised_until', text(due))
      woken[#woken + 1] = waits[which]
    else
      due = which
    end
  end
  local fields = {}
  for field, value in pairs(r.put) do
    fields[#fields + 1] = field
    fields[#fields + 1] = value
  end
  if fields[1] then call('HSET', base .. 'r:' .. r.name, unpack(fields)) end
  if due then
    call('ZADD', base .. 'timers', text(due), r.name)
  else
    call('ZREM', base .. 'timers', r.name)
  end
end
local function close()
  if woken[1] then call('PUBLISH', KEYS[2], cjson.encode({ wake = woken })) end
end
-- Whether that is the present turn, and this worker's ('': any); else how it ended ('': unknown) and who has the turn.
local function own(r, token, worker)
  if held(r) and r.f.turn == token and (worker == '' or r.f.worker == worker) then return true end
  for _, past in ipairs(call('LRANGE', base .. 'past:' .. r.name, '0', '-1')) do
    if string.sub(past, 1, #token + 1) == token .. ' ' then return false, past end
  end
  return false, ''
end
