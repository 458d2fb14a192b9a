-- move_tasks: fragment before every script that changes tasks: their records, queues and histories.
-- KEYS as in open_dispatch.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `moves()`, which gives `parse(record)`, `compose(task)`, `enqueue(...)`, `delay(...)`,
-- `bury(...)`, `note(...)` and `used_up(task)`, and `sweep(most)`.
-- Why: a record is one string, so that a claim reads and writes all of its tasks in one command each:
-- `STATE SOURCE ATTEMPT TOKEN ACCEPTED PRIORITY EVERY CREATED CHANGED AT CLAIM/SIZE COLLECTOR`, then a line each with the
-- key and the newest error, then the payload. Instants and durations are microseconds; AT is when it is due or its lease
-- ends; ACCEPTED is the token whose result counted last, so that a repeated report is known; SIZE is how many tasks its
-- claim had.
local kit
local function moves()
  if kit then return kit end
  kit = {}
  function kit.parse(record)
    local t = {}
    t.state, t.source, t.attempt, t.token, t.accepted, t.priority, t.every, t.created, t.changed, t.at, t.claim,
      t.collector, t.key, t.error, t.payload = string.match(record,
      '^(%a+) (%S+) (%d+) (%d+) (%d+) (%d) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+)\n([^\n]*)\n([^\n]*)\n(.*)$')
    return t
  end
  function kit.compose(t, unchanged)
    return table.concat({ t.state, t.source, t.attempt, t.token, t.accepted, t.priority, t.every, t.created,
      unchanged and t.changed or now_text, t.at, t.claim, t.collector }, ' ') .. '\n' .. t.key .. '\n' .. t.error
      .. '\n' .. t.payload
  end
  -- Into the queue of what may be claimed: behind, or before, all of the same priority (domain::dispatch::Place).
  function kit.enqueue(id, t, before)
    t.state, t.at, t.claim, t.collector = 'ready', '0', '-', '-'
    local place = (9 - tonumber(t.priority)) * 562949953421312 + 281474976710656
    if before then
      place = place - count(t.source, 'head', '1')
    else
      place = place + count(t.source, 'tail', '1')
    end
    call('ZADD', base .. 'q:' .. t.source, integer(place), id)
  end
  function kit.delay(id, t, at)
    t.state, t.at, t.claim, t.collector = 'due', integer(at), '-', '-'
    call('ZADD', base .. 'd:' .. t.source, t.at, id)
    call('ZADD', timers, 'LT', t.at, 'd:' .. t.source)
  end
  function kit.note(id, t, event)
    local history = base .. 'h:' .. id
    local who = t.collector ~= '-' and t.collector or nil
    local why = t.error ~= '' and t.error or nil
    call('RPUSH', history,
      cjson.encode({ at = now_text, event = event, attempt = tonumber(t.attempt), collector = who, error = why }))
    call('LTRIM', history, '-20', '-1')
  end
  function kit.bury(id, t)
    kit.note(id, t, 'died')
    t.state, t.at, t.claim, t.collector = 'dead', '0', '-', '-'
    call('ZADD', base .. 'x:' .. t.source, now_text, id)
  end
  function kit.used_up(t)
    local most = tonumber(call('HGET', base .. 's:' .. t.source, 'attempts'))
    return most > 0 and tonumber(t.attempt) >= most
  end
  function kit.expire(id, t)
    count(t.source, 'expired', '1')
    if kit.used_up(t) then
      t.error = t.error ~= '' and t.error or 'the lease ran out'
      kit.bury(id, t)
    else
      kit.note(id, t, 'expired')
      kit.enqueue(id, t, true)
    end
  end
  return kit
end
-- Acts on what the clock alone has changed, for at most `most` timers and 64 tasks of each. Returns how many leases had
-- run out and whether there is more.
local function sweep(most)
  local rung = call('ZRANGE', timers, '-inf', now_text, 'BYSCORE', 'LIMIT', '0', most)
  if not rung[1] then return 0, false end
  local expired, more, touched, kit = 0, #rung == tonumber(most), {}, moves()
  for _, timer in ipairs(rung) do
    local kind, source = string.sub(timer, 1, 1), string.sub(timer, 3)
    local rules = load(source)
    touched[source] = rules
    if kind == 's' then
      call('ZREM', timers, timer)
    else
      local set, act = base .. kind .. ':' .. source, kind == 'l' and kit.expire or kit.enqueue
      local ids = call('ZRANGE', set, '-inf', now_text, 'BYSCORE', 'LIMIT', '0', '64')
      more = more or #ids == 64
      for i = 1, #ids do
        -- Leases backwards, because each goes to the very head.
        local id = ids[kind == 'l' and #ids + 1 - i or i]
        local t = kit.parse(call('GET', base .. 't:' .. id))
        call('ZREM', set, id)
        act(id, t)
        call('SET', base .. 't:' .. id, kit.compose(t))
      end
      local first = call('ZRANGE', set, '0', '0', 'WITHSCORES')
      if kind == 'l' then
        expired = expired + #ids
        rules.ends = tonumber(first[2] or 0)
        call('HSET', base .. 's:' .. source, 'ends', first[2] or '0')
      end
      if first[1] then
        call('ZADD', timers, first[2], timer)
      else
        call('ZREM', timers, timer)
      end
    end
  end
  for source, rules in pairs(touched) do place(source, rules) end
  return expired, more
end
