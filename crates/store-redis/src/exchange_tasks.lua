-- exchange_tasks: one exchange or several of a node: after the results of each (settle_results), grant what it asks.
-- KEYS as in open_dispatch.
-- ARGV[1] how many finished tasks are kept  ARGV behind it, of each exchange: how many arguments follow; those of settle_results;
-- nothing, or collector, claim (made of owner, collector and request), whether to note when the collector was seen (1 or 0), most,
-- waiter ('' for a final answer), how long it waits (microseconds), how many sources (0: any), the sources
-- Returns of each the statuses, then nothing, or 'granted', until, and id and record of each task; or 'nothing', reason, when (0:
-- unknown); or 'missing', source (then nothing was done).
-- Why: the same request makes the same claim, so an answer lost in the network costs nothing. Sources are served in
-- turn, in rounds: all of a round get the same number (domain::dispatch::share), and what one cannot give is divided among
-- the others in the next. Exchanges that share a call are answered as if each came alone, at the same instant, and pay for it once.
local swept, answers = false, {}
local function exchange(first, last)
  local statuses, following, missing = settle_results(first, last)
  if missing then return { statuses, 'missing', missing } end
  if following > last then return { statuses } end
  local collector, fresh, wanted = ARGV[following], ARGV[following + 1], tonumber(ARGV[following + 3])
  local waiter, named = ARGV[following + 4], tonumber(ARGV[following + 6])
  local saved = base .. 'c:' .. fresh
  if ARGV[following + 2] == '1' and call('HSET', base .. 'collectors', collector, now_text) == 1
      and call('HLEN', base .. 'collectors') > 2000 then
    -- A thousand are named (read_collectors): the others go together, because to find them costs a millisecond.
    local seen, stamps, over = call('HGETALL', base .. 'collectors'), {}, {}
    for i = 2, #seen, 2 do stamps[i / 2] = tonumber(seen[i]) end
    table.sort(stamps)
    for i = 2, #seen, 2 do
      if tonumber(seen[i]) < stamps[#stamps - 999] then over[#over + 1] = seen[i - 1] end
    end
    if over[1] then call('HDEL', base .. 'collectors', unpack(over)) end
  end
  local stood = waiter ~= '' and call('HDEL', base .. 'waits', waiter) == 1

  local memory = not gone[saved] and call('GET', saved)
  if memory then
    local reason, till = string.match(memory, '^%- (%S+) (%d+)$')
    local answer = { statuses, 'nothing', reason, till }
    if not reason then
      -- The last end; the answer names the earliest one of what is held.
      till = string.match(memory, '^%d+ %S+ (%d+)')
      answer = { statuses, 'granted', till }
      local first = never
      for id, held in string.gmatch(memory, '\n(%S+) (%d+)') do
        local record = pending[tasks .. id] or call('GET', tasks .. id)
        local t = record and moves().parse(record)
        if t and t.state == 'leased' and t.token == held and tonumber(t.at) > now then
          answer[#answer + 1] = id
          answer[#answer + 1] = record
          if tonumber(t.at) < first then first, answer[3] = tonumber(t.at), t.at end
        end
      end
    end
    -- When all of it is over, the memory was only for a late extend.
    if #answer > 3 or tonumber(till) > now then
      -- It may be in a collector's hands from now on (return_claim).
      if not reason and not string.find(memory, '\n+', 1, true) then call('SET', saved, memory .. '\n+', 'KEEPTTL') end
      return answer
    end
  end
  if not swept then
    swept = true
    sweep('16')
  end

  local granted, granted_from, earliest, longest, first_end, last_end = {}, {}, never, 0, nil, nil
  -- Of this round: how many sources could be served when it began, how many are still to come, how many tasks each gives.
  local round, coming, each = 0, 0, 0
  -- The sources that come next, and those that were served since these were read.
  local line, at, served_now = {}, 1, {}
  -- Whoever was served goes to the end of the ring, in that order.
  local function go_to_the_end()
    local last = #served_now
    if last == 0 then return end
    local turn, moves_to = call('INCR', base .. 'turn'), {}
    for i = 1, last do moves_to[2 * i - 1], moves_to[2 * i] = integer(turn + i - 1), served_now[i] end
    if last > 1 then call('SET', base .. 'turn', integer(turn + last - 1)) end
    call('ZADD', ring, 'XX', unpack(moves_to))
    served_now = {}
  end
  -- Reads who comes next: one more than there are tasks wanted is enough. Answers how many can be served.
  local function line_up()
    go_to_the_end()
    at = 1
    if named == 0 then
      line = call('ZRANGE', ring, '0', integer(wanted))
      return #line <= wanted and #line or call('ZCARD', ring)
    end
    local turns = {}
    line = {}
    for i = 1, named do
      local source = ARGV[following + 6 + i]
      turns[source] = tonumber(call('ZSCORE', ring, source) or nil)
      if turns[source] then line[#line + 1] = source end
    end
    table.sort(line, function(a, b) return turns[a] < turns[b] end)
    return #line
  end
  while wanted > 0 do
    -- Who was looked at and not served is in the ring no more.
    if coming == 0 or not line[at] then
      local open = line_up()
      if open == 0 then break end
      if coming == 0 then round, coming, each = open, open, math.max(1, math.floor(wanted / open)) end
    end
    local source = line[at]
    at, coming = at + 1, coming - 1
    local rules = load(source)
    local left = room(source, rules)
    local most = math.min(wanted, left, each)
    -- One more than is taken says whether that empties the queue.
    local ids = left > 0 and call('ZRANGE', base .. 'q:' .. source, '0', integer(most)) or {}
    local served = math.min(#ids, most)
    if served > 0 then
      call('ZREMRANGEBYRANK', base .. 'q:' .. source, '0', integer(served - 1))
      local till, before = now + rules.lease, #granted
      rules.till = integer(till)
      local leases = {}
      for i = 1, served do
        granted[before + i], granted_from[before + i] = ids[i], source
        leases[2 * i - 1], leases[2 * i] = rules.till, ids[i]
      end
      call('ZADD', base .. 'l:' .. source, unpack(leases))
      if rules.ends == 0 or rules.ends > till then
        call('ZADD', timers, 'LT', rules.till, 'l:' .. source)
        rules.ends = till
        call('HSET', base .. 's:' .. source, 'ends', rules.till)
      end
      rules.started = rules.started + served
      if not rules.plain then
        call('HSET', base .. 's:' .. source, 'last', now_text)
        rules.last = now
        for _ = 1, rules.count > 0 and served or 0 do call('LPUSH', base .. 'w:' .. source, now_text) end
      end
      if rules.promised > 0 then
        rules.promised = math.max(0, rules.promised - served)
        call('HSET', base .. 's:' .. source, 'promised', rules.promised)
      end
      if till < earliest then earliest, first_end = till, rules.till end
      if rules.lease >= longest then longest, last_end = rules.lease, rules.till end
      wanted = wanted - served
      -- Alone in the ring it comes first and last.
      if round > 1 or named > 0 then served_now[#served_now + 1] = source end
    end
    touched[source] = true
    if #ids <= served or not rules.plain then place(source, rules) end
  end
  go_to_the_end()
  if granted[1] then
    local keys, held_here, tails, size = {}, {}, {}, #granted
    for i = 1, size do keys[i] = tasks .. granted[i] end
    local tail = ' ' .. fresh .. '/' .. size .. ' ' .. collector .. '\n'
    local answer = { statuses, 'granted', first_end }
    local records = call('MGET', unpack(keys))
    for i = 1, size do
      local id, source, old = granted[i], granted_from[i], pending[keys[i]] or records[i]
      local rules = book[source]
      -- It begins with `ready SOURCE `.
      local attempt, kept, body = match(old, '^([^ ]+) [^ ]+ ([^ ]+ [^ ]+ [^ ]+ [^ ]+) [^\n]+\n()', #source + 8)
      local held = mint(rules)
      tails[source] = tails[source] or ' ' .. now_text .. ' ' .. rules.till .. tail
      local record = 'leased ' .. source .. ' ' .. (attempt == '0' and '1' or integer(attempt + 1)) .. ' ' .. held .. ' '
        .. kept .. tails[source] .. sub(old, body)
      pending[keys[i]] = record
      answer[2 * i + 2], answer[2 * i + 3] = id, record
      held_here[i] = id .. ' ' .. held .. ' ' .. integer(rules.lease)
    end
    -- After an earlier grant of the same name, the node that gave that one may still want to take it back.
    local mark = memory and not string.find(memory, '^%-') and '\n+' or ''
    call('SET', saved, size .. ' ' .. collector .. ' ' .. last_end .. '\n' .. table.concat(held_here, '\n') .. mark, 'PX',
      integer(math.ceil(longest / 1000) + 60000))
    gone[saved] = nil
    return answer
  end

  -- Nothing: why, and until when, of the source that can be served the soonest.
  local reason, till = 'empty', never
  local function consider(source)
    local rules = load(source)
    if call('ZCARD', base .. 'q:' .. source) == 0 then
      local due = tonumber(call('ZRANGE', base .. 'd:' .. source, '0', '0', 'WITHSCORES')[2] or nil)
      if reason == 'empty' then till = math.min(till, due or never) end
      return
    end
    local _, why, when = room(source, rules)
    -- Open by now, although this call did not come to it: asking again at once helps.
    if not why then why, when = 'gap', now end
    if reason == 'empty' or (when or never) < till then
      reason, till = why, when or never
    end
  end
  if named == 0 then
    -- Those at their cap stand by an end that may be over, or later by now.
    local shut = call('ZRANGE', base .. 'shut', '0', '15')
    for _, source in ipairs(shut) do consider(source) end
    if not shut[1] then
      for _, timer in ipairs(call('ZRANGE', timers, '0', '31')) do
        if string.sub(timer, 1, 1) == 'd' then
          consider(string.sub(timer, 3))
          break
        end
      end
    end
  else
    for i = 1, named do consider(ARGV[following + 6 + i]) end
  end
  till = till < never and integer(till) or '0'
  if waiter == '' then
    gone[saved] = nil
    call('SET', saved, '- ' .. reason .. ' ' .. till, 'PX', '60000')
  else
    waiting = nil
    -- Each exchange takes longer than a microsecond: whoever comes later stands behind.
    local came = integer(now + #answers)
    call('HSET', base .. 'waits', waiter, integer(now + tonumber(ARGV[following + 5])))
    call('PEXPIRE', base .. 'waits', '120000')
    local queues = named == 0 and { base .. 'v' } or {}
    for i = 1, named do queues[i] = base .. 'v:' .. ARGV[following + 6 + i] end
    for _, queue in ipairs(queues) do
      -- Who waits already keeps its place; who was woken for one of its sources left it in the queues of the others.
      if stood then call('ZADD', queue, 'NX', came, waiter) else call('ZADD', queue, came, waiter) end
      call('PEXPIRE', queue, '120000')
    end
  end
  return { statuses, 'nothing', reason, till }
end
local at = 2
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  answers[#answers + 1] = exchange(at + 1, last)
  wake_touched()
  at = last + 1
end
remember_done(tonumber(ARGV[1]))
close()
return answers
