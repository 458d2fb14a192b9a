-- open_rotation: fragment before every script of rotations: the clock, one rotation, and whose turn it is.
-- KEYS[1] base  what every key of rotations begins with (keys.rs)  KEYS[2] channel on which waiters are woken
-- KEYS[3] epoch (trust_store), that of no job
-- ARGV none of its own.
-- Returns nothing by itself; leaves `now`, `open(name)` and what can be done with the rotation `r` that it answers: `expire(r)`,
-- `finish(r, ending, at)`, `choose(r, also)`, `earliest(r, kind)`, `settle(r)`, which every script calls that
-- changed anything, and `close()`, which wakes who was promised a turn.
-- Why: these are the decisions of domain::rotation; a rotation is read once, changed in `r.put`, and written once.
-- Which keys a call touches depends on what is found; all of them begin with KEYS[1] and have its hash tag.
local base, call = KEYS[1], redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local woken = {}

-- `%d` is quicker than `%.0f`, and as exact where a whole number of C has 64 bits.
local whole = string.format('%d', 9007199254740991) == '9007199254740991' and '%d' or '%.0f'
local function text(n)
  return string.format(whole, n)
end
local function life_of(waiter)
  return string.match(waiter, '^(.*)/[^/]*$') or waiter
end

-- A rotation: its hash, its types in order and their places.
local function open(name)
  -- RESP3 answers a map. As RESP2, which all other calls use, it is a list, and Lua would have to make the map.
  redis.setresp(3)
  local f = call('HGETALL', base .. 'r:' .. name).map
  redis.setresp(2)
  if next(f) == nil then return nil end
  local r = { name = name, f = f, put = {}, types = {}, place = {}, first = {} }
  for kind in string.gmatch(r.f.types, '[^ ]+') do
    r.types[#r.types + 1] = kind
    r.place[kind] = #r.types
  end
  return r
end
local function put(r, field, value)
  if r.f[field] == value then return end
  r.f[field] = value
  local list = r.put
  list[#list + 1] = field
  list[#list + 1] = value
end
local function number(r, field)
  return tonumber(r.f[field] or '0')
end
local function held(r)
  return (r.f.turn or '') ~= ''
end
-- A server of another run id, or one that was emptied, may know only old turns: no turn begins until each turn of which it may
-- know nothing has run out. `forgot` is when that happened; 0: never.
local function doubt(r, server, forgot)
  put(r, 'server', server)
  put(r, 'doubted', text(forgot))
  if forgot == 0 then return end
  -- It may have lapsed, and another may have begun.
  put(r, 'promised', '')
  local lease = math.max(number(r, 'lease'), number(r, 'ttl'), number(r, 'min_gap'))
  put(r, 'recovered', text(math.max(number(r, 'recovered'), forgot + lease)))
end
local function recovered(r)
  if not r.looked then
    r.looked = true
    local known = call('HMGET', KEYS[3], 'run_id', 'doubted')
    local info = call('INFO', 'server')
    local forgot = tonumber(known[2] or '0') * 1000
    if not string.find(info, 'run_id:' .. (r.f.server or '?'), 1, true) then
      doubt(r, string.match(info, 'run_id:(%w+)') or '', now)
    elseif forgot > number(r, 'doubted') then
      doubt(r, r.f.server, forgot)
    end
  end
  return number(r, 'recovered')
end
-- The present turn on one line (parse.rs), or ''.
local function turn(r)
  if not held(r) then return '' end
  return table.concat({ r.f.turn, r.f.kind, r.f.worker, r.f.request, r.f.since, r.f['until'], r.f.ttl }, ' ')
end

-- The turn ends at that instant: it is remembered and counted.
local function finish(r, ending, at)
  local past = table.concat({ r.f.turn, r.f.kind, r.f.worker, r.f.since, text(at), ending }, ' ')
  -- So many are remembered (`own`), and few more: the oldest go several at a time.
  if call('LPUSH', base .. 'past:' .. r.name, past) > 220 then call('LTRIM', base .. 'past:' .. r.name, '0', '199') end
  local field = ending .. ':' .. r.f.kind
  put(r, field, text(number(r, field) + 1))
  put(r, 'turn', '')
end
local function expire(r)
  if not held(r) or number(r, 'until') > now then return end
  -- The next pump says so.
  call('RPUSH', base .. 'lost', r.name, turn(r))
  finish(r, 'lost', number(r, 'until'))
end

-- The types in the order in which their turns come.
local function order(r)
  local first = r.place[r.f.next or ''] or (r.place[r.f.after or ''] or 0) + 1
  local kinds = {}
  for i = 0, #r.types - 1 do kinds[i + 1] = r.types[(first - 1 + i) % #r.types + 1] end
  return kinds
end
-- The first instant at which a type could start if no other waiter came first, and why not before ('order': now).
local function earliest(r, kind)
  local at, why = now, 'order'
  local function after(last, gap, reason)
    if last > 0 and gap > 0 and last + gap > at then at, why = last + gap, reason end
  end
  if number(r, 'recovered') > at then at, why = number(r, 'recovered'), 'recovery' end
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

-- A waiter for a type stands in a queue of its node incarnation (`life`), in order of their places: those of a silent
-- incarnation are passed over without being looked at.
local function queue(r, kind, life)
  return base .. 'q:' .. r.name .. ':' .. kind .. ':' .. life
end
local function known(r, life)
  return base .. 'w:' .. r.name .. ':' .. life
end
local function lives(r)
  r.lives = r.lives or call('SMEMBERS', base .. 'lives:' .. r.name)
  return r.lives
end
local silent
local function any_is_silent()
  silent = silent or call('HLEN', base .. 'silent')
  return silent > 0
end
local function is_silent(r, life)
  if not any_is_silent() then return false end
  local till = call('HGET', base .. 'silent', life .. ' ' .. r.name)
  return till and tonumber(till) > now
end
local function strike(r, kind, waiter)
  local life = life_of(waiter)
  call('ZREM', queue(r, kind, life), waiter)
  call('HDEL', known(r, life), waiter)
  r.first[kind] = nil
end
-- The first who waits for a type, or false; those before it whose time is over are struck out.
local function first(r, kind)
  if r.first[kind] ~= nil then return r.first[kind] end
  local found, place = false, nil
  for _, life in ipairs(lives(r)) do
    while not is_silent(r, life) do
      local head = call('ZRANGE', queue(r, kind, life), '0', '0', 'WITHSCORES')
      if not head[1] then break end
      local till = string.match(call('HGET', known(r, life), head[1]) or '', '^(%d+)')
      if till and tonumber(till) > now then
        if not place or tonumber(head[2]) < place then found, place = head[1], tonumber(head[2]) end
        break
      end
      strike(r, kind, head[1])
    end
  end
  r.first[kind] = found
  return found
end
-- How many wait for a type; those before `place` only, if one is given.
local function count(r, kind, place)
  local sum = 0
  for _, life in ipairs(lives(r)) do
    local waiters = queue(r, kind, life)
    sum = sum + (place and call('ZCOUNT', waiters, '-inf', '(' .. place) or call('ZCARD', waiters))
  end
  return sum
end
-- Whose turn it is, when the caller asks for `also`: 'now', its type; or 'later', until when, as far as that is known. It looks
-- for who waits for a type only when that type's turn has come.
local function choose(r, also)
  local kinds = order(r)
  local soonest
  for i, kind in ipairs(kinds) do
    if r.f.skip == 'never' and i > 1 then break end
    if kind == also or first(r, kind) then
      local at, why = earliest(r, kind)
      if why == 'order' then return 'now', kind end
      if not soonest or at < soonest then soonest = at end
    end
  end
  return 'later', soonest
end

-- Renews a node incarnation in all rotations; answers those in which it was silent.
local function hear(life)
  local rotations = {}
  if call('HLEN', base .. 'silent') == 0 then return rotations end
  for _, field in ipairs(call('HKEYS', base .. 'silent')) do
    local of, rotation = string.match(field, '^(%S+) (%S+)$')
    if of == life then
      call('HDEL', base .. 'silent', field)
      rotations[#rotations + 1] = rotation
    end
  end
  silent = nil
  return rotations
end
-- A promise that was not taken up in time lapses with the place of its waiter, and its incarnation is silent: for no longer
-- than a waiter may wait.
local function lapse(r)
  local waiter = r.f.promised or ''
  if waiter == '' or number(r, 'promised_until') > now then return end
  -- A promise from before a restart is taken back, and makes no incarnation silent.
  recovered(r)
  if r.f.promised == '' then return end
  strike(r, r.f.promised_kind, waiter)
  call('HSET', base .. 'silent', life_of(waiter) .. ' ' .. r.name, text(now + 35000000))
  call('PEXPIRE', base .. 'silent', '120000')
  silent = nil
  r.first = {}
  put(r, 'promised', '')
end

-- Promises the turn to whom it belongs, and writes down what is left. Whether the store may have forgotten a turn is looked at
-- when the promised one is taken (take_turn). Answers when something is due next, if anything is; after a call that changed
-- nothing, nothing.
local function settle(r)
  lapse(r)
  -- While a turn goes on, who comes and goes changes nothing.
  if held(r) and not r.put[1] then return end
  local due
  if (r.f.promised or '') ~= '' then
    due = number(r, 'promised_until')
  elseif held(r) then
    due = number(r, 'until')
  else
    local what, which = choose(r)
    if what == 'now' then
      local waiter = first(r, which)
      due = now + 100000
      put(r, 'promised', waiter)
      put(r, 'promised_kind', which)
      put(r, 'promised_until', text(due))
      woken[#woken + 1] = waiter
    else
      due = which
    end
  end
  -- A field that is there twice has its last value.
  if r.put[1] then call('HSET', base .. 'r:' .. r.name, unpack(r.put)) end
  if due then
    call('ZADD', base .. 'timers', text(due), r.name)
  else
    call('ZREM', base .. 'timers', r.name)
  end
  return due
end
local function close()
  if woken[1] then call('PUBLISH', KEYS[2], cjson.encode({ wake = woken })) end
end
-- Whether that is the present turn, and this worker's ('': any); else how it ended ('': unknown) and who has the turn.
local function own(r, token, worker)
  if held(r) and r.f.turn == token and (worker == '' or r.f.worker == worker) then return true end
  for _, past in ipairs(call('LRANGE', base .. 'past:' .. r.name, '0', '199')) do
    if string.sub(past, 1, #token + 1) == token .. ' ' then return false, past end
  end
  return false, ''
end
