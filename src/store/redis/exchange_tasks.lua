-- exchange_tasks: after the results (settle_results), grant what is asked.
-- KEYS as in open_dispatch.
-- ARGV from `following`: nothing, or collector, request, claim (a fresh id), most, waiter ('' for a final answer), how long
-- it waits (microseconds), how many sources (0: any), the sources; the very last: how many finished tasks are kept
-- Returns the statuses, then nothing, or 'granted', claim, until, and id and record of each task; or 'nothing', reason,
-- when (0: unknown); or 'missing', source (then nothing was done).
-- Why: the same request gets the same claim, so an answer lost in the network costs nothing. Sources are served in
-- turn, each as many as leaves room for the others (domain::dispatch::share).
local collector, request, fresh = ARGV[following], ARGV[following + 1], ARGV[following + 2]
if following >= #ARGV then
  close()
  return { statuses }
end
local wanted, waiter, patience = tonumber(ARGV[following + 3]), ARGV[following + 4], tonumber(ARGV[following + 5])
local named = tonumber(ARGV[following + 6])
local function source_named(i) return ARGV[following + 6 + i] end
local saved = base .. 'r:' .. collector .. ' ' .. request
redis.call('HSET', base .. 'collectors', collector, now)
if waiter ~= '' then redis.call('HDEL', base .. 'waits', waiter) end

local function repeated(claim)
  local head = redis.call('GET', base .. 'c:' .. claim)
  if not head then return nil end
  local answer = { statuses, 'granted', claim, string.match(head, '^%d+ %S+ %S+ (%d+)') }
  for id, held in string.gmatch(head, '\n(%S+) (%d+)') do
    local record = redis.call('GET', base .. 't:' .. id)
    local t = record and parse(record)
    if t and t.state == 'leased' and t.token == held then
      answer[#answer + 1] = id
      answer[#answer + 1] = record
    end
  end
  -- It may be in a collector's hands from now on (return_claim).
  if not string.find(head, '\n+', 1, true) then redis.call('SET', base .. 'c:' .. claim, head .. '\n+', 'KEEPTTL') end
  return answer
end
local known = redis.call('GET', saved)
if known then
  local claim, reason, till = string.match(known, '^(%S+) ?(%S*) ?(%S*)')
  local answer = reason ~= '' and { statuses, 'nothing', reason, till } or repeated(claim)
  if answer then
    close()
    return answer
  end
end
sweep(16)

-- The source whose turn it is, and how many could be served.
local function first_in_line()
  if named == 0 then return redis.call('ZRANGE', ring, 0, 0)[1], redis.call('ZCARD', ring) end
  local best, least, open = nil, nil, 0
  for i = 1, named do
    local turn = tonumber(redis.call('ZSCORE', ring, source_named(i)) or nil)
    if turn then
      open = open + 1
      if not least or turn < least then best, least = source_named(i), turn end
    end
  end
  return best, open
end
local granted, earliest, memory, longest = {}, never, {}, 0
local function serve(source, rules, most)
  local popped = redis.call('ZPOPMIN', base .. 'q:' .. source, most)
  local keys, ids = {}, {}
  for i = 1, #popped, 2 do
    ids[#ids + 1] = popped[i]
    keys[#keys + 1] = base .. 't:' .. popped[i]
  end
  if not ids[1] then return 0 end
  local till = now + rules.lease
  local tail = integer(now) .. ' ' .. integer(till) .. ' ' .. fresh .. ' ' .. collector .. '\n'
  local records, changed, leases = redis.call('MGET', unpack(keys)), {}, {}
  for i, id in ipairs(ids) do
    local attempt, kept, body = string.match(records[i],
      '^%a+ %S+ (%d+) %d+ (%d+ %d %d+ %d+) %d+ %d+ %S+ %S+\n(.*)$')
    local held = integer(mint())
    local record = 'leased ' .. source .. ' ' .. integer(attempt + 1) .. ' ' .. held .. ' ' .. kept .. ' ' .. tail .. body
    changed[2 * i - 1], changed[2 * i] = keys[i], record
    leases[2 * i - 1], leases[2 * i] = till, id
    granted[#granted + 1], granted[#granted + 2] = id, record
    memory[#memory + 1] = id .. ' ' .. held
    if rules.count > 0 then redis.call('LPUSH', base .. 'w:' .. source, now) end
  end
  redis.call('MSET', unpack(changed))
  redis.call('ZADD', base .. 'l:' .. source, unpack(leases))
  redis.call('ZADD', ends, 'LT', till, source)
  rules.last = now
  local counts = base .. 's:' .. source
  redis.call('HSET', counts, 'last', now)
  redis.call('HINCRBY', counts, 'started', #ids)
  if rules.promised > 0 then
    rules.promised = math.max(0, rules.promised - #ids)
    redis.call('HSET', counts, 'promised', rules.promised)
  end
  earliest, longest = math.min(earliest, till), math.max(longest, rules.lease)
  return #ids
end
while wanted > 0 do
  local source, open = first_in_line()
  if not source then break end
  local rules = load(source)
  local left = room(source, rules)
  if left > 0 then
    local share = math.max(1, math.floor(wanted / open))
    wanted = wanted - serve(source, rules, math.min(wanted, left, share))
  end
  place(source, rules, left > 0)
end
if granted[1] then
  local ms = math.ceil(longest / 1000)
  redis.call('SET', base .. 'c:' .. fresh, integer(#memory) .. ' ' .. collector .. ' ' .. request .. ' '
    .. integer(earliest) .. '\n' .. table.concat(memory, '\n'), 'PX', ms + 60000)
  redis.call('SET', saved, fresh, 'PX', ms)
  close()
  return { statuses, 'granted', fresh, integer(earliest), unpack(granted) }
end

-- Nothing: why, and until when, of the source that can be served the soonest.
local reason, till = 'empty', never
local function consider(source)
  local rules = load(source)
  if redis.call('ZCARD', base .. 'q:' .. source) == 0 then
    local due = tonumber(redis.call('ZRANGE', base .. 'd:' .. source, 0, 0, 'WITHSCORES')[2] or nil)
    if reason == 'empty' then till = math.min(till, due or never) end
    return
  end
  local _, why, when = room(source, rules)
  -- Open by now, although this call did not come to it: asking again at once helps.
  if not why then why, when = 'gap', now end
  if (reason == 'empty' or (when or never) < till) then
    reason, till = why, when or never
  end
end
if named == 0 then
  local first = redis.call('ZRANGE', shut, 0, 0)[1]
  if first then
    consider(first)
  else
    till = tonumber(redis.call('ZRANGE', dues, 0, 0, 'WITHSCORES')[2] or never)
  end
else
  for i = 1, named do consider(source_named(i)) end
end
till = till < never and integer(till) or '0'
if waiter == '' then
  redis.call('SET', saved, '- ' .. reason .. ' ' .. till, 'PX', 60000)
else
  redis.call('HSET', base .. 'waits', waiter, integer(now + patience))
  redis.call('PEXPIRE', base .. 'waits', 120000)
  local queues = named == 0 and { base .. 'v' } or {}
  for i = 1, named do queues[i] = base .. 'v:' .. source_named(i) end
  for _, queue in ipairs(queues) do
    redis.call('ZREMRANGEBYSCORE', queue, '-inf', now - 3600000000)
    redis.call('ZADD', queue, 'NX', now, waiter)
    redis.call('PEXPIRE', queue, 120000)
  end
end
close()
return { statuses, 'nothing', reason, till }
