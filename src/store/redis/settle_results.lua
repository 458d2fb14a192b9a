-- settle_results: fragment of exchange_tasks: takes results.
-- KEYS as in open_dispatch.
-- ARGV[1] only  collector whose tasks alone may be reported; '' for any  ARGV[2] how many results
-- ARGV[3..] of each: id, token, outcome, delay (microseconds, -1: the backoff), error (one line)
-- Returns nothing by itself; leaves `statuses`, `following` (index of the next argument) and `settled`.
-- Why: a result counts only under the token of a lease that lives, and only once; one that counted already is told so
-- again, because its answer may have been lost. A claim whose tasks are all finished needs no memory any more.
local statuses, rulebook, touched, finished = {}, {}, {}, {}
local reports = tonumber(ARGV[2])
local following = 3 + 5 * reports
if following < #ARGV then
  for i = following + 7, #ARGV - 1 do
    if redis.call('EXISTS', base .. 's:' .. ARGV[i]) == 0 then return { statuses, 'missing', ARGV[i] } end
  end
end
local function settle(id, t, outcome, wait)
  local rules = rulebook[t.source] or load(t.source)
  rulebook[t.source] = rules
  local counts = base .. 's:' .. t.source
  redis.call('ZREM', base .. 'l:' .. t.source, id)
  touched[t.source] = touched[t.source] or rules.cap > 0
  local claim = t.claim
  finished[claim] = (finished[claim] or 0) + 1
  t.accepted = t.token
  if outcome == 'done' then
    t.error = ''
    if t.every ~= '0' then
      t.attempt = '0'
      delay(id, t, now + tonumber(t.every))
      redis.call('HINCRBY', counts, 'finished', 1)
    else
      t.state, t.at, t.claim, t.payload = 'done', '0', '-', 'null'
      rules.closed = (rules.closed or 0) + 1
      redis.call('RPUSH', base .. 'done', id)
    end
  elseif outcome == 'dead' or (rules.attempts > 0 and tonumber(t.attempt) >= rules.attempts) then
    bury(id, t)
  else
    note(id, t, 'retried')
    redis.call('HINCRBY', counts, 'retried', 1)
    if wait < 0 then
      wait = math.min(rules.max, rules.first * 2 ^ math.min(tonumber(t.attempt) - 1, 20))
    end
    if wait > 0 then
      delay(id, t, now + wait)
    else
      enqueue(id, t, rules)
      touched[t.source] = true
    end
  end
end
if reports > 0 then
  local keys, changed = {}, {}
  for i = 1, reports do keys[i] = base .. 't:' .. ARGV[5 * i - 2] end
  local records = redis.call('MGET', unpack(keys))
  for i = 1, reports do
    local at = 5 * i - 2
    local t = records[i] and parse(records[i])
    if not t then
      statuses[i] = 'unknown'
    elseif t.state == 'leased' and t.token == ARGV[at + 1] and tonumber(t.at) > now
        and (ARGV[1] == '' or t.collector == ARGV[1]) then
      if ARGV[at + 4] ~= '' then t.error = ARGV[at + 4] end
      settle(ARGV[at], t, ARGV[at + 2], tonumber(ARGV[at + 3]))
      changed[#changed + 1] = keys[i]
      changed[#changed + 1] = compose(t)
      for later = i + 1, reports do
        if keys[later] == keys[i] then records[later] = changed[#changed] end
      end
      statuses[i] = 'ok'
    else
      statuses[i] = t.accepted == ARGV[at + 1] and 'ok' or 'stale'
    end
  end
  if changed[1] then redis.call('MSET', unpack(changed)) end
  for claim, count in pairs(finished) do
    local key = base .. 'c:' .. claim
    local head, rest = string.match(redis.call('GET', key) or '', '^(%d+)( .*)$')
    if head and tonumber(head) > count then
      redis.call('SET', key, integer(tonumber(head) - count) .. rest, 'KEEPTTL')
    elseif head then
      local collector, request = string.match(rest, '^ (%S+) (%S+)')
      redis.call('DEL', key, base .. 'r:' .. collector .. ' ' .. request)
    end
  end
  local closed = 0
  for source, rules in pairs(rulebook) do
    if rules.closed then
      closed = closed + rules.closed
      redis.call('HINCRBY', base .. 's:' .. source, 'done', rules.closed)
      redis.call('HINCRBY', base .. 's:' .. source, 'finished', rules.closed)
    end
    if touched[source] then place(source, rules) end
  end
  -- So many finished tasks are remembered, and no more.
  local over = closed > 0 and redis.call('LLEN', base .. 'done') - tonumber(ARGV[#ARGV]) or 0
  if over > 0 then
    local forget = {}
    for _, id in ipairs(redis.call('LPOP', base .. 'done', math.min(over, 1000))) do
      forget[#forget + 1] = base .. 't:' .. id
      forget[#forget + 1] = base .. 'h:' .. id
    end
    redis.call('DEL', unpack(forget))
  end
end
