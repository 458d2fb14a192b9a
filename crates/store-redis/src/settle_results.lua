-- settle_results: fragment of exchange_tasks: takes the results of an exchange.
-- KEYS as in open_dispatch.
-- ARGV from `first`: only  owner (32 digits) of the claims whose tasks alone may be reported; '' for any  how many results
-- ARGV behind them, of each: id, token, outcome, and unless that is 'done', delay (microseconds, -1: the backoff) and error (one line)
-- Returns nothing by itself; leaves `settle_results(first, last)`, which answers the statuses (empty: 'ok' for all) and the index
-- of the next argument, or those and the name of a source that is missing (then nothing was done), and `remember_done(most)`.
-- Why: a result counts only under the token of a lease that lasts, and only once; one that counted already is told so
-- again, because its answer may have been lost. A claim whose tasks are all finished needs no memory any more.
-- What an exchange before it in the same call wrote may still be in `pending` and `gone`: they are asked before the server.
local dead = {}
-- Another try, a recrawl, or dead. Returns whether something can be claimed now.
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
  pending[tasks .. id] = kit.compose(t)
  return ready
end
-- Of many sources little is read: who reports on one source often claims from it again.
local function is_plain(source, alone)
  local rules = book[source] or alone and load(source)
  if rules then return rules.plain end
  return call('HGET', base .. 's:' .. source, 'plain') == '1'
end
local function settle_results(first, last)
  local statuses, reports = {}, tonumber(ARGV[first + 1])
  local following, places, keys = first + 2, {}, {}
  for i = 1, reports do
    places[i], keys[i] = following, tasks .. ARGV[following]
    following = following + (ARGV[following + 2] == 'done' and 3 or 5)
  end
  for i = following + 7, last do
    if not load(ARGV[i]) then return statuses, following, ARGV[i] end
  end
  if reports == 0 then return statuses, following end
  local only = ARGV[first]
  local function answer(i, status)
    if status == 'ok' and not statuses[1] then return end
    for before = #statuses + 1, i - 1 do statuses[before] = 'ok' end
    statuses[i] = status
  end
  local settled, finished = {}, {}
  local records = call('MGET', unpack(keys))
  -- Tasks that were granted in one step have the same end of their first line, and it is long: it is read once.
  local ending, claim, counts, closing
  local find = string.find
  local sources = {}
  for i = 1, reports do
    local at = places[i]
    local id, held = ARGV[at], ARGV[at + 1]
    local record = pending[keys[i]] or records[i]
    if not record then
      answer(i, 'unknown')
    else
      local state, source, attempt, current, accepted, kept, every, rest = match(record,
        '^([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+ ([^ ]+) [^ ]+)()')
      if not ending or find(record, ending, rest, true) ~= rest then
        local till, of, collector, over = match(record, '^ [^ ]+ ([^ ]+) ([^ ]+) ([^\n]+)\n()', rest)
        ending, claim = sub(record, rest, over - 1), of
        counts = tonumber(till) > now and (only == '' or sub(of, 1, 32) == only)
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
          pending[keys[i]] = 'done ' .. source .. ' ' .. attempt .. ' ' .. held .. ' ' .. held .. ' ' .. kept .. closing
            .. sub(record, from, find(record, '\n', from, true)) .. '\nnull'
          dead[#dead + 1] = id
        else
          local ready
          local wait, why = -1, ''
          if ARGV[at + 2] ~= 'done' then wait, why = tonumber(ARGV[at + 3]), ARGV[at + 4] end
          ready = settle(id, record, ARGV[at + 2], wait, why)
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
  for claim, ids in pairs(finished) do
    local name, size = string.match(claim, '^(%w+)/(%d+)$')
    local memory = base .. 'c:' .. name
    if tonumber(size) == #ids then
      gone[memory] = true
    else
      local left, rest = string.match(not gone[memory] and call('GET', memory) or '', '^(%d+)( .*)$')
      if left and tonumber(left) > #ids then
        -- What was reported is neither kept nor lost, whatever becomes of the task.
        for _, id in ipairs(ids) do rest = string.gsub(rest, '\n' .. id .. ' %d+ ?%d*', '', 1) end
        call('SET', memory, tonumber(left) - #ids .. rest, 'KEEPTTL')
      elseif left then
        gone[memory] = true
      end
    end
  end
  return statuses, following
end
-- So many finished tasks are remembered, and few more: the oldest are forgotten several at a time.
local function remember_done(most)
  local over = dead[1] and call('RPUSH', base .. 'done', unpack(dead)) - most or 0
  if over < 20 then return end
  for _, id in ipairs(call('LPOP', base .. 'done', math.min(over, 1000))) do
    gone[tasks .. id], gone[base .. 'h:' .. id] = true, true
  end
end
