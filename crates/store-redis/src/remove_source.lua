-- remove_source: a source goes with its tasks, at most so many tasks in one call.
-- KEYS as in open_dispatch.
-- ARGV[1] source  ARGV[2] '1': also with tasks that are not done  ARGV[3] most tasks in this call, at most 1000
-- Returns 'missing'; 'kept', when tasks would be lost; 'more', call again; or 'done'; then how many tasks there were, and how
-- many of them in a collector's hands.
-- Why: no call of all others waits for a million tasks. From the first call on nothing is served from the source; who waits
-- for it is woken by the last, and finds it gone.
local source = ARGV[1]
local key = base .. 's:' .. source
if call('EXISTS', key) == 0 then return { 'missing', 0, 0 } end
local sets, tasks = { 'q:', 'd:', 'l:', 'x:' }, 0
for _, set in ipairs(sets) do tasks = tasks + call('ZCARD', base .. set .. source) end
local in_hand = call('ZCARD', base .. 'l:' .. source)
if tasks > 0 and ARGV[2] ~= '1' then return { 'kept', tasks, in_hand } end
call('HSET', key, 'paused', '1')
judge(source)
local most = tonumber(ARGV[3])
local left = tasks
for _, set in ipairs(sets) do
  local ids = most > 0 and call('ZRANGE', base .. set .. source, '0', most - 1) or {}
  if ids[1] then call('ZREM', base .. set .. source, unpack(ids)) end
  for _, id in ipairs(ids) do call('DEL', base .. 't:' .. id, base .. 'h:' .. id) end
  most, left = most - #ids, left - #ids
end
if left > 0 then
  place(source, load(source))
  close()
  return { 'more', tasks, in_hand }
end
-- What is done is remembered over all sources.
local done = call('LRANGE', base .. 'done', '0', '-1')
local kept = {}
for _, id in ipairs(done) do
  local record = call('GET', base .. 't:' .. id)
  if record and string.match(record, '^%a+ (%S+)') == source then
    call('DEL', base .. 't:' .. id, base .. 'h:' .. id)
  else
    kept[#kept + 1] = id
  end
end
if #kept < #done then
  call('DEL', base .. 'done')
  for i = 1, #kept, 1000 do call('RPUSH', base .. 'done', unpack(kept, i, math.min(i + 999, #kept))) end
end
for _, waiter in ipairs(call('ZRANGE', base .. 'v:' .. source, '0', '-1')) do
  if call('HDEL', base .. 'waits', waiter) == 1 then
    woken = woken or { wake = {} }
    woken.wake[#woken.wake + 1] = waiter
  end
end
call('DEL', key, base .. 'w:' .. source, base .. 'v:' .. source)
call('ZREM', base .. 'names', source)
call('ZREM', ring, source)
call('ZREM', base .. 'shut', source)
call('ZREM', timers, 'l:' .. source, 'd:' .. source, 's:' .. source, 'p:' .. source)
book, touched = {}, {}
close()
return { 'done', tasks, in_hand }
