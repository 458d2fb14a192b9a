-- open_dispatch: fragment before every script of dispatch: the clock, tokens, sources and their turns.
-- KEYS[1] base  what every key of dispatch begins with (keys.rs)  KEYS[2] channel on which waiters are woken
-- ARGV none of its own.
-- Returns nothing by itself; leaves `now` (microseconds), `mint()`, `load(source)`, `room(source, rules)`,
-- `place(source, rules, served)` and `close()`, which every script calls before it returns.
-- Why: a source is in `ring` (score: its turn) when it can be served, in `shut` (score: when that may change) when it has
-- ready tasks and cannot, in neither when it has none. Turns and tokens come from one counter, so turns never tie.
-- Which keys a call touches depends on what is found; all of them begin with KEYS[1] and have its hash tag.
local base, never = KEYS[1], 9e15
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local ring, shut, ends, dues = base .. 'ring', base .. 'shut', base .. 'ends', base .. 'dues'
local token, minted, woken, waiting

local function integer(n)
  return string.format('%.0f', n)
end
local function mint()
  if not minted then
    token = math.max(tonumber(redis.call('GET', base .. 'token') or 0), math.floor(now / 1000) * 1024 - 1)
    minted = true
  end
  token = token + 1
  return token
end
local function close()
  if minted then redis.call('SET', base .. 'token', integer(token)) end
  if woken then redis.call('PUBLISH', KEYS[2], cjson.encode(woken)) end
end
local function load(source)
  local f = redis.call('HMGET', base .. 's:' .. source, 'lease', 'gap', 'count', 'span', 'cap', 'attempts', 'first',
    'max', 'paused', 'blocked', 'last', 'tail', 'head', 'promised', 'promised_until')
  if not f[1] then return nil end
  return { lease = tonumber(f[1]), gap = tonumber(f[2]), count = tonumber(f[3]), span = tonumber(f[4]),
    cap = tonumber(f[5]), attempts = tonumber(f[6]), first = tonumber(f[7]), max = tonumber(f[8]), paused = f[9] == '1',
    blocked = tonumber(f[10] or 0), last = tonumber(f[11] or 0), tail = tonumber(f[12] or 0),
    head = tonumber(f[13] or 0), promised = tonumber(f[14] or 0), promised_until = tonumber(f[15] or 0) }
end
-- How many may start now, else 0, why, and until when (domain::dispatch::Rules::room).
local function room(source, rules)
  if rules.paused then return 0, 'paused' end
  if rules.blocked > now then return 0, 'blocked', rules.blocked end
  local left, after = never, 0
  if rules.cap > 0 then
    left = rules.cap - redis.call('ZCARD', base .. 'l:' .. source)
    if left <= 0 then
      return 0, 'cap', tonumber(redis.call('ZRANGE', base .. 'l:' .. source, 0, 0, 'WITHSCORES')[2])
    end
  end
  if rules.gap > 0 then
    if rules.last > 0 then after = rules.last + rules.gap end
    left = 1
  end
  if rules.count > 0 then
    local stamps = base .. 'w:' .. source
    local oldest = tonumber(redis.call('LINDEX', stamps, -1) or nil)
    while oldest and oldest <= now - rules.span do
      redis.call('RPOP', stamps)
      oldest = tonumber(redis.call('LINDEX', stamps, -1) or nil)
    end
    local recent = redis.call('LLEN', stamps)
    if recent >= rules.count then after = math.max(after, oldest + rules.span) end
    left = math.min(left, rules.count - recent)
  end
  if after > now then return 0, 'gap', after end
  return left
end
-- Wakes the oldest who wait for this source or for any: one for each task that can start and is not promised yet.
local function wake(source, rules, ready, left)
  waiting = waiting or redis.call('HLEN', base .. 'waits')
  if waiting == 0 then return end
  local promised = rules.promised_until > now and rules.promised or 0
  local own, any = base .. 'v:' .. source, base .. 'v'
  local wanted = math.min(ready, left) - promised
  local called = 0
  while called < wanted do
    local a = redis.call('ZRANGE', own, 0, 0, 'WITHSCORES')
    local b = redis.call('ZRANGE', any, 0, 0, 'WITHSCORES')
    if not a[1] and not b[1] then break end
    local theirs = a[1] and (not b[1] or tonumber(a[2]) <= tonumber(b[2]))
    local waiter = theirs and a[1] or b[1]
    redis.call('ZREM', theirs and own or any, waiter)
    local till = redis.call('HGET', base .. 'waits', waiter)
    if till then
      redis.call('HDEL', base .. 'waits', waiter)
      if tonumber(till) > now then
        woken = woken or { wake = {} }
        woken.wake[#woken.wake + 1] = waiter
        called = called + 1
      end
    end
  end
  if called > 0 then
    rules.promised, rules.promised_until = promised + called, now + 100000
    redis.call('HSET', base .. 's:' .. source, 'promised', rules.promised, 'promised_until', rules.promised_until)
  end
end
-- Puts the source where it belongs after something changed; `served` sends it behind all others.
local function place(source, rules, served)
  local ready = redis.call('ZCARD', base .. 'q:' .. source)
  if ready == 0 then
    redis.call('ZREM', ring, source)
    redis.call('ZREM', shut, source)
    return
  end
  local left, _, till = room(source, rules)
  if left > 0 then
    if served then
      redis.call('ZADD', ring, mint(), source)
    else
      redis.call('ZREM', shut, source)
      redis.call('ZADD', ring, 'NX', mint(), source)
    end
    wake(source, rules, ready, left)
  else
    redis.call('ZREM', ring, source)
    redis.call('ZADD', shut, till or never, source)
  end
end
