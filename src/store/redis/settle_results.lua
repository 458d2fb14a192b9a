-- settle_results: fragment of exchange_tasks: takes results.
-- KEYS as in open_dispatch.
-- ARGV[1] only  owner (32 digits) of the claims whose tasks alone may be reported; '' for any  ARGV[2] how many results
-- ARGV[3..] of each: id, token, outcome, delay (microseconds, -1: the backoff), error (one line)
-- Returns nothing by itself; leaves `statuses` and `following` (index of the next argument).
-- Why: a result counts only under the token of a lease that lasts, and only once; one that counted already is told so
-- again, because its answer may have been lost. A claim whose tasks are all finished needs no memory any more.
local statuses, reports = {}, tonumber(ARGV[2])
local following = 3 + 5 * reports
for i = following + 7, #ARGV - 1 do
  if not load(ARGV[i]) then return { statuses, 'missing', ARGV[i] } end
end
-- Another try, a recrawl, or dead. Returns the new record and whether something can be claimed now.
local function settle(id, record, outcome, wait, why)
  local kit = moves()
  local t, ready = kit.parse(record), false
  if why ~= '' then t.error = why end
  t.accepted = t.token
  if outcome == 'done' then
    t.error, t.attempt = '', '0'
    count(t.source, 'recrawled', '1')
    kit.delay(id, t, now + tonumber(t.every))
  elseif outcome == 'dead' or kit.used_up(t) then
    kit.bury(id, t, why)
  else
    kit.note(id, t, 'retried', why)
    count(t.source, 'retried', '1')
    if wait < 0 then
      local f = call('HMGET', base .. 's:' .. t.source, 'first', 'max')
      wait = math.min(tonumber(f[2]), tonumber(f[1]) * 2 ^ math.min(tonumber(t.attempt) - 1, 20))
    end
    ready = wait <= 0
    if ready then
      kit.enqueue(id, t)
    else
      kit.delay(id, t, now + wait)
    end
  end
  local changed = kit.compose(t)
  call('SET', base .. 't:' .. id, changed)
  return changed, ready
end
if reports > 0 then
  local keys, dead, changed, settled, finished = {}, {}, {}, {}, {}
  for i = 1, reports do keys[i] = base .. 't:' .. ARGV[5 * i - 2] end
  local records = call('MGET', unpack(keys))
  for i = 1, reports do
    local at = 5 * i - 2
    local id, held = ARGV[at], ARGV[at + 1]
    local record = changed[id] or records[i]
    if not record then
      statuses[i] = 'unknown'
    else
      local state, source, attempt, current, accepted, kept, till, claim, collector, key = string.match(record,
        '^(%a+) (%S+) (%d+) (%d+) (%d+) (%d %d+ %d+) %d+ (%d+) (%S+) (%S+)\n([^\n]*)')
      if state == 'leased' and current == held and tonumber(till) > now
          and (ARGV[1] == '' or string.sub(claim, 1, 32) == ARGV[1]) then
        statuses[i] = 'ok'
        local freed = settled[source]
        if not freed then
          freed = { ready = not load(source).plain, done = 0 }
          settled[source] = freed
        end
        freed[#freed + 1] = id
        finished[claim] = finished[claim] or {}
        table.insert(finished[claim], id)
        -- Done for good, the commonest: its payload is needed no more.
        if ARGV[at + 2] == 'done' and string.sub(kept, 2, 4) == ' 0 ' then
          freed.done = freed.done + 1
          changed[id] = 'done ' .. source .. ' ' .. attempt .. ' ' .. held .. ' ' .. held .. ' ' .. kept .. ' ' .. now_text
            .. ' 0 - ' .. collector .. '\n' .. key .. '\n\nnull'
          later[#later + 1] = keys[i]
          later[#later + 1] = changed[id]
          dead[#dead + 1] = id
        else
          local ready
          changed[id], ready = settle(id, record, ARGV[at + 2], tonumber(ARGV[at + 3]), ARGV[at + 4])
          freed.ready = freed.ready or ready
        end
      else
        statuses[i] = accepted == held and 'ok' or 'stale'
      end
    end
  end
  for _, source in ipairs(names(settled)) do
    local freed = settled[source]
    touched[source] = true
    call('ZREM', base .. 'l:' .. source, unpack(freed))
    if freed.done > 0 then
      local rules = load(source)
      rules.done, rules.closed = rules.done + freed.done, true
    end
    if freed.ready then place(source, load(source)) end
  end
  local function forget(name)
    -- The same request may be asked again in this very step: then it is a new one.
    if name == ARGV[following + 1] then
      call('DEL', base .. 'c:' .. name)
    else
      gone[#gone + 1] = base .. 'c:' .. name
    end
  end
  for claim, ids in pairs(finished) do
    local name, size = string.match(claim, '^(%w+)/(%d+)$')
    local memory = base .. 'c:' .. name
    if tonumber(size) == #ids then
      forget(name)
    else
      local left, rest = string.match(call('GET', memory) or '', '^(%d+)( .*)$')
      if left and tonumber(left) > #ids then
        -- What was reported is neither kept nor lost, whatever becomes of the task.
        for _, id in ipairs(ids) do rest = string.gsub(rest, '\n' .. id .. ' %d+', '', 1) end
        call('SET', memory, tonumber(left) - #ids .. rest, 'KEEPTTL')
      elseif left then
        forget(name)
      end
    end
  end
  -- So many finished tasks are remembered, and few more: the oldest are forgotten several at a time.
  local over = dead[1] and call('RPUSH', base .. 'done', unpack(dead)) - tonumber(ARGV[#ARGV]) or 0
  if over >= 20 then
    for _, id in ipairs(call('LPOP', base .. 'done', math.min(over, 1000))) do
      gone[#gone + 1] = base .. 't:' .. id
      gone[#gone + 1] = base .. 'h:' .. id
    end
  end
end
