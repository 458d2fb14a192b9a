-- move_tasks: fragment before every script that changes tasks: their records, queues and histories.
-- KEYS as in open_dispatch.
-- ARGV none of its own.
-- Returns nothing by itself; leaves `moves()`, which gives `parse(record)`, `compose(task)`, `enqueue(...)`, `delay(...)`,
-- `bury(...)`, `note(...)` and `used_up(task)`, and `sweep(most)`.
-- Why: a record is one string, so that a claim reads and writes all of its tasks in one command each:
-- `STATE SOURCE ATTEMPT TOKEN ACCEPTED PRIORITY EVERY CREATED CHANGED AT CLAIM/SIZE COLLECTOR`, then a line each with the
-- key and the newest error, then the payload. Lua finds the end of `[^ ]+` several times sooner than that of `%d+`. Instants and durations are microseconds; AT is when it is due or its lease
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
      '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^\n]+)'
      .. '\n([^\n]*)\n([^\n]*)\n(.*)$')
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
  -- `why` is what was reported with it, if anything was.
  function kit.note(id, t, event, why)
    local history = base .. 'h:' .. id
    local who = t.collector ~= '-' and t.collector or nil
    why = why ~= '' and why or nil
    call('RPUSH', history,
      cjson.encode({ at = now_text, event = event, attempt = tonumber(t.attempt), collector = who, error = why }))
    call('LTRIM', history, '-20', '-1')
  end
  function kit.bury(id, t, why)
    kit.note(id, t, 'died', why)
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
  local expired, more, opened, kit = 0, #rung == tonumber(most), {}, moves()
  for _, timer in ipairs(rung) do
    local kind, source = string.sub(timer, 1, 1), string.sub(timer, 3)
    local rules = load(source)
    if kind == 's' or kind == 'p' then
      local at = kind == 's' and call('ZSCORE', timers, timer) or never
      opened[#opened + 1] = { at = tonumber(at), timer = timer, source = source }
      call('ZREM', timers, timer)
    else
      local set, act = base .. kind .. ':' .. source, kind == 'l' and kit.expire or kit.enqueue
      local ids = call('ZRANGE', set, '-inf', now_text, 'BYSCORE', 'LIMIT', '0', '64')
      more = more or #ids == 64
      local tasks = {}
      for i = 1, #ids do
        tasks[i] = kit.parse(call('GET', base .. 't:' .. ids[i]))
        tasks[i].id = ids[i]
      end
      if ids[1] then opened[#opened + 1] = { at = tonumber(tasks[1].at), timer = timer, source = source } end
      -- Leases backwards, because each goes to the very head; of one end in the order in which they were granted.
      if kind == 'l' then
        table.sort(tasks, function(a, b)
          local one, other = tonumber(a.at), tonumber(b.at)
          if one ~= other then return one > other end
          return tonumber(a.token) > tonumber(b.token)
        end)
      end
      for _, t in ipairs(tasks) do
        call('ZREM', set, t.id)
        act(t.id, t)
        call('SET', base .. 't:' .. t.id, kit.compose(t))
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
  -- As if each had been noticed at its instant.
  table.sort(opened, function(a, b) return a.at < b.at or (a.at == b.at and a.timer < b.timer) end)
  for _, one in ipairs(opened) do place(one.source, load(one.source)) end
  return expired, more
end
