-- move_tasks: fragment before every script that changes tasks: their records, queues and histories.
-- KEYS as in open_dispatch.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `parse(record)`, `compose(task)`, `enqueue(...)`, `delay(...)`, `bury(...)`,
-- `note(...)` and `sweep(most)`.
-- Why: a record is one string, so that a claim reads and writes all of its tasks in one command each:
-- `STATE SOURCE ATTEMPT TOKEN ACCEPTED PRIORITY EVERY CREATED CHANGED AT CLAIM COLLECTOR`, then a line each with the key and
-- the newest error, then the payload. Instants and durations are microseconds; AT is when it is due or its lease ends;
-- ACCEPTED is the token whose result counted last, so that a repeated report is known.
local function parse(record)
  local t = {}
  t.state, t.source, t.attempt, t.token, t.accepted, t.priority, t.every, t.created, t.changed, t.at, t.claim,
    t.collector, t.key, t.error, t.payload = string.match(record,
    '^(%a+) (%S+) (%d+) (%d+) (%d+) (%d) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)\n([^\n]*)\n([^\n]*)\n(.*)$')
  return t
end
local function compose(t, unchanged)
  return table.concat({ t.state, t.source, t.attempt, t.token, t.accepted, t.priority, t.every, t.created,
    unchanged and t.changed or integer(now), t.at, t.claim, t.collector }, ' ') .. '\n' .. t.key .. '\n' .. t.error .. '\n' .. t.payload
end
-- Into the queue of what may be claimed: behind, or before, all of the same priority (domain::dispatch::Place).
local function enqueue(id, t, rules, before)
  t.state, t.at, t.claim, t.collector = 'ready', '0', '-', '-'
  local floor = (9 - tonumber(t.priority)) * 562949953421312 + 281474976710656
  if before then
    rules.head = rules.head + 1
    redis.call('ZADD', base .. 'q:' .. t.source, floor - rules.head, id)
    redis.call('HSET', base .. 's:' .. t.source, 'head', rules.head)
  else
    rules.tail = rules.tail + 1
    redis.call('ZADD', base .. 'q:' .. t.source, floor + rules.tail, id)
    redis.call('HSET', base .. 's:' .. t.source, 'tail', rules.tail)
  end
end
local function delay(id, t, at)
  t.state, t.at, t.claim, t.collector = 'due', integer(at), '-', '-'
  redis.call('ZADD', base .. 'd:' .. t.source, at, id)
  redis.call('ZADD', dues, 'LT', at, t.source)
end
local function note(id, t, event)
  local history = base .. 'h:' .. id
  local who = t.collector ~= '-' and t.collector or nil
  local why = t.error ~= '' and t.error or nil
  redis.call('RPUSH', history,
    cjson.encode({ at = integer(now), event = event, attempt = tonumber(t.attempt), collector = who, error = why }))
  redis.call('LTRIM', history, -20, -1)
end
local function bury(id, t)
  note(id, t, 'died')
  t.state, t.at, t.claim, t.collector = 'dead', '0', '-', '-'
  redis.call('ZADD', base .. 'x:' .. t.source, now, id)
end
-- Sets the first instant at which a source has something to do in `index`.
local function first_of(set, index, source)
  local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')
  if first[1] then
    redis.call('ZADD', index, first[2], source)
  else
    redis.call('ZREM', index, source)
  end
end
-- Acts on what the clock alone has changed, for at most `most` sources of each kind and 64 tasks of each. Returns how
-- many leases had run out and whether there is more.
local function sweep(most)
  local expired, more = 0, false
  local touched = {}
  local function overdue(index, prefix, backwards, act)
    local sources = redis.call('ZRANGE', index, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
    more = more or #sources == most
    for _, source in ipairs(sources) do
      local rules = touched[source] or load(source)
      touched[source] = rules
      local set = base .. prefix .. source
      local ids = redis.call('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, 64)
      more = more or #ids == 64
      for i = 1, #ids do
        local id = ids[backwards and #ids + 1 - i or i]
        local key = base .. 't:' .. id
        local t = parse(redis.call('GET', key))
        redis.call('ZREM', set, id)
        act(id, t, rules)
        redis.call('SET', key, compose(t))
      end
      first_of(set, index, source)
    end
  end
  -- Backwards, because each goes to the very head.
  overdue(ends, 'l:', true, function(id, t, rules)
    expired = expired + 1
    redis.call('HINCRBY', base .. 's:' .. t.source, 'expired', 1)
    if rules.attempts > 0 and tonumber(t.attempt) >= rules.attempts then
      t.error = t.error ~= '' and t.error or 'the lease ran out'
      bury(id, t)
    else
      note(id, t, 'expired')
      enqueue(id, t, rules, true)
    end
  end)
  overdue(dues, 'd:', false, enqueue)
  for _, source in ipairs(redis.call('ZRANGE', shut, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)) do
    touched[source] = touched[source] or load(source)
  end
  for source, rules in pairs(touched) do
    place(source, rules)
  end
  return expired, more
end
