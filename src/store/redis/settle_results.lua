-- settle_results: fragment of exchange_tasks: takes results.
-- KEYS as in open_dispatch.
-- ARGV[1] only  owner (32 digits) of the claims whose tasks alone may be reported; '' for any  ARGV[2] how many results
-- ARGV[3..] of each: id, token, outcome, and unless that is 'done', delay (microseconds, -1: the backoff) and error (one line)
-- Returns nothing by itself; leaves `statuses` (empty: 'ok' for all) and `following` (index of the next argument).
-- Why: a result counts only under the token of a lease that lasts, and only once; one that counted already is told so
-- again, because its answer may have been lost. A claim whose tasks are all finished needs no memory any more.
local statuses, reports = {}, tonumber(ARGV[2])
local following, places, keys = 3, {}, {}
for i = 1, reports do
  places[i], keys[i] = following, tasks .. ARGV[following]
  following = following + (ARGV[following + 2] == 'done' and 3 or 5)
end
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
-- Of many sources little is read: who reports on one source often claims from it again.
local function is_plain(source, alone)
  local rules = book[source] or alone and load(source)
  if rules then return rules.plain end
  return call('HGET', base .. 's:' .. source, 'plain') == '1'
end
local function answer(i, status)
  if status == 'ok' and not statuses[1] then return end
  for before = #statuses + 1, i - 1 do statuses[before] = 'ok' end
  statuses[i] = status
end
if reports > 0 then
  local dead, changed, settled, finished, noted = {}, {}, {}, {}, 0
  local records = call('MGET', unpack(keys))
  -- Tasks that were granted in one step have the same end of their first line, and it is long: it is read once.
  local ending, claim, counts, closing
  local find = string.find
  local sources = {}
  for i = 1, reports do
    local at = places[i]
    local id, held = ARGV[at], ARGV[at + 1]
    local record = changed[id] or records[i]
    if not record then
      answer(i, 'unknown')
    else
      local state, source, attempt, current, accepted, kept, every, rest = match(record,
        '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+ ([^ ]+) [^ ]+)()')
      if not ending or find(record, ending, rest, true) ~= rest then
        local till, of, collector, over = match(record, '^ [^ ]+ ([^ ]+) ([^ ]+) ([^\n]+)\n()', rest)
        ending, claim = sub(record, rest, over - 1), of
        counts = tonumber(till) > now and (ARGV[1] == '' or sub(of, 1, 32) == ARGV[1])
        closing = ' ' .. now_text .. ' 0 - ' .. collector .. '\n'
      end
      if state == 'leased' and current == held and counts then
        answer(i, 'ok')
        local freed, ids = settled[source], finished[claim]
        if not freed then
          freed = { ready = not is_plain(source, not sources[1]), done = 0 }
          settled[source] = freed
          sources[#sources + 1] = source
        end
        if not ids then
          ids = {}
          finished[claim] = ids
        end
        freed[#freed + 1] = id
        ids[#ids + 1] = id
        -- Done for good, the commonest: its payload is needed no more.
        if ARGV[at + 2] == 'done' and every == '0' then
          local from = rest + #ending
          freed.done = freed.done + 1
          changed[id] = 'done ' .. source .. ' ' .. attempt .. ' ' .. held .. ' ' .. held .. ' ' .. kept .. closing
            .. sub(record, from, find(record, '\n', from, true)) .. '\nnull'
          later[2 * noted + 1], later[2 * noted + 2] = keys[i], changed[id]
          noted = noted + 1
          dead[noted] = id
        else
          local ready
          local wait, why = -1, ''
          if ARGV[at + 2] ~= 'done' then wait, why = tonumber(ARGV[at + 3]), ARGV[at + 4] end
          changed[id], ready = settle(id, record, ARGV[at + 2], wait, why)
          freed.ready = freed.ready or ready
        end
      else
        answer(i, accepted == held and 'ok' or 'stale')
      end
    end
  end
  local ready = {}
  for _, source in ipairs(sources) do
    local freed, rules = settled[source], book[source]
    touched[source] = true
    call('ZREM', base .. 'l:' .. source, unpack(freed))
    if freed.done > 0 and rules then
      rules.done, rules.closed = rules.done + freed.done, true
    elseif freed.done > 0 then
      count(source, 'done', integer(freed.done))
    end
    if freed.ready then ready[source] = true end
  end
  for _, source in ipairs(names(ready)) do place(source, load(source)) end
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
      gone[#gone + 1] = tasks .. id
      gone[#gone + 1] = base .. 'h:' .. id
    end
  end
end
