-- open_dispatch: fragment before every script of dispatch: the clock, tokens, sources and their turns.
-- KEYS[1] base  what every key of dispatch begins with (keys.rs)  KEYS[2] channel on which waiters are woken
-- ARGV none of its own.
-- Returns nothing by itself; leaves `now` and `now_text` (microseconds), `load(source)`, `mint(rules)`, `count(source, field,
-- by)`, `room(source, rules)`, `place(source, rules)`, `names(set)`, `wake_touched()`, which wakes who waits for the sources in
-- `touched`, and `close()`, which does that too, writes what was put off (`pending`: records by key, `gone`: keys), and which every
-- script calls before it returns.
-- Why: a source is in `ring` (score: its turn) when it can be served, in `shut` (score: when that may change) when it has
-- ready tasks and cannot, in neither when it has none.
-- `timers` says when the clock alone will change something: `l` a lease ends, `d` a task is due (both are lower bounds),
-- `s` a source opens, `p` who was woken for it did not come, so that the next must be. Turns come from one counter, so they never tie.
-- Which keys a call touches depends on what is found; all of them begin with KEYS[1] and have its hash tag.
-- Large numbers are passed as text, and what is seldom needed is a function within a function: both cost Lua time.
local base, never, call = KEYS[1], 9e15, redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
-- `%d` is quicker than `%.0f`, and as exact where a whole number of C has 64 bits.
local format, match, sub = string.format, string.match, string.sub
local whole = format('%d', 9007199254740991) == '9007199254740991' and '%d' or '%.0f'
local now_text = format(whole, now)
local ring, timers, tasks = base .. 'ring', base .. 'timers', base .. 't:'
local woken, waiting
local book, gone, pending, touched = {}, {}, {}, {}

local function integer(n)
  return format(whole, n)
end
-- What every call needs of a source; `plain` is 1 when no rule limits its starts and nothing blocks it.
local function load(source)
  local rules = book[source]
  if rules then return rules end
  local f = call('HMGET', base .. 's:' .. source, 'lease', 'plain', 'ends', 'promised', 'token', 'started', 'done')
  if not f[1] then return nil end
  -- What is only counted on stays text, which arithmetic takes as well.
  rules = { lease = tonumber(f[1]), plain = f[2] == '1', ends = tonumber(f[3]), promised = tonumber(f[4] or 0),
    token = f[5] or 0, started = f[6] or 0, done = f[7] or 0 }
  book[source] = rules
  return rules
end
-- A task belongs to one source, so its tokens grow with those of the source.
local least = math.floor(now / 1000) * 1024
local function mint(rules)
  local token = rules.token + 1
  if token < least then token = least end
  rules.token, rules.text = token, format(whole, token)
  return rules.text
end
local function count(source, field, by)
  return call('HINCRBY', base .. 's:' .. source, field, by)
end
-- Keys in order: Lua's own order is no order.
local function names(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end
local function waiters()
  waiting = waiting or call('HLEN', base .. 'waits')
  return waiting > 0
end
-- How many may start now, else 0, why, and until when (domain::dispatch::Rules::room).
local function room(source, rules)
  if rules.plain then return never end
  if not rules.gap then
    local f = call('HMGET', base .. 's:' .. source, 'gap', 'count', 'span', 'cap', 'paused', 'blocked', 'last')
    rules.gap, rules.count, rules.span, rules.cap = tonumber(f[1]), tonumber(f[2]), tonumber(f[3]), tonumber(f[4])
    rules.paused, rules.blocked, rules.last = f[5] == '1', tonumber(f[6] or 0), tonumber(f[7] or 0)
  end
  if rules.paused then return 0, 'paused' end
  if rules.blocked > now then return 0, 'blocked', rules.blocked end
  local left, after = never, 0
  if rules.cap > 0 then
    left = rules.cap - call('ZCARD', base .. 'l:' .. source)
    if left <= 0 then
      return 0, 'cap', tonumber(call('ZRANGE', base .. 'l:' .. source, '0', '0', 'WITHSCORES')[2])
    end
  end
  if rules.gap > 0 then
    if rules.last > 0 then after = rules.last + rules.gap end
    left = 1
  end
  if rules.count > 0 then
    local stamps = base .. 'w:' .. source
    local oldest = tonumber(call('LINDEX', stamps, '-1') or nil)
    while oldest and oldest <= now - rules.span do
      call('RPOP', stamps)
      oldest = tonumber(call('LINDEX', stamps, '-1') or nil)
    end
    local recent = call('LLEN', stamps)
    if recent >= rules.count then after = math.max(after, oldest + rules.span) end
    left = math.min(left, rules.count - recent)
  end
  if after > now then return 0, 'gap', after end
  return left
end
-- Puts the source where it belongs after something changed.
local function place(source, rules)
  touched[source] = true
  local ready = call('ZCARD', base .. 'q:' .. source)
  local left, why, till = 0, nil, nil
  if ready > 0 then left, why, till = room(source, rules) end
  if left <= 0 then
    call('ZREM', ring, source)
    if ready > 0 then
      call('ZADD', base .. 'shut', integer(till or never), source)
      -- At a cap, the end of a lease has its own timer.
      if till and why ~= 'cap' then
        call('ZADD', timers, integer(till), 's:' .. source)
      else
        call('ZREM', timers, 's:' .. source)
      end
      return
    end
  end
  call('ZREM', base .. 'shut', source)
  call('ZREM', timers, 's:' .. source)
  if left <= 0 then return end
  call('ZADD', ring, 'NX', call('INCR', base .. 'turn'), source)
end
-- Wakes the oldest who wait for a source or for any: one for each task that can start and is not promised yet. At the end of
-- a step, so that who asks in this step comes before who waits.
local function wake(source, rules)
  local ready = call('ZCARD', base .. 'q:' .. source)
  local left = ready > 0 and room(source, rules) or 0
  if left <= 0 then return end
  local counts, promised = base .. 's:' .. source, rules.promised
  if promised > 0 and tonumber(call('HGET', counts, 'promised_until')) <= now then promised = 0 end
  local own, any, called = base .. 'v:' .. source, base .. 'v', 0
  while called < math.min(ready, left) - promised do
    local a = call('ZRANGE', own, '0', '0', 'WITHSCORES')
    local b = call('ZRANGE', any, '0', '0', 'WITHSCORES')
    if not a[1] and not b[1] then break end
    local theirs = a[1] and (not b[1] or tonumber(a[2]) <= tonumber(b[2]))
    local waiter = theirs and a[1] or b[1]
    call('ZREM', theirs and own or any, waiter)
    local patience = call('HGET', base .. 'waits', waiter)
    if patience then
      call('HDEL', base .. 'waits', waiter)
      if tonumber(patience) > now then
        woken = woken or { wake = {} }
        woken.wake[#woken.wake + 1] = waiter
        called = called + 1
      end
    end
  end
  if called > 0 then
    rules.promised = promised + called
    local lapses = integer(now + 100000)
    call('HSET', counts, 'promised', rules.promised, 'promised_until', lapses)
    call('ZADD', timers, lapses, 'p:' .. source)
  end
end
-- At the end of what happens at once: of a call, or of each exchange in it.
local function wake_touched()
  if not next(touched) then return end
  if waiters() then
    for _, source in ipairs(names(touched)) do wake(source, load(source)) end
  end
  touched = {}
end
local function close()
  for source, rules in pairs(book) do
    if rules.text then
      call('HSET', base .. 's:' .. source, 'token', rules.text, 'started', integer(rules.started), 'done', integer(rules.done))
    elseif rules.closed then
      call('HSET', base .. 's:' .. source, 'done', integer(rules.done))
    end
  end
  local list, size = {}, 0
  for key, record in pairs(pending) do
    list[size + 1], list[size + 2] = key, record
    size = size + 2
  end
  if size > 0 then call('MSET', unpack(list)) end
  list = {}
  for key in pairs(gone) do list[#list + 1] = key end
  if list[1] then call('DEL', unpack(list)) end
  wake_touched()
  if woken then call('PUBLISH', KEYS[2], cjson.encode(woken)) end
end
