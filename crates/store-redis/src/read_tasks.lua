-- read_tasks: tasks by their last change, newest first.
-- KEYS as in open_dispatch.
-- ARGV[1] source, or '' for all  ARGV[2] state, or '' for any  ARGV[3] before this change (microseconds; 0: from the newest)
-- ARGV[4] of that instant, those with smaller ids only  ARGV[5] limit
-- Returns of each: id, record, and its history as a list.
-- Why: there is no index of changes, because every claim would pay for it: the last 10000 of all queues are looked at, as far
-- as their first line, and put in order here.
local before, limit, looked, found = tonumber(ARGV[3]), tonumber(ARGV[5]), 0, {}
local function consider(id)
  looked = looked + 1
  local head = call('GETRANGE', base .. 't:' .. id, '0', '255')
  local source, changed = string.match(head, '^%a+ (%S+) %d+ %d+ %d+ %d %d+ %d+ (%d+) ')
  if not source or ARGV[1] ~= '' and source ~= ARGV[1] then return end
  local at = tonumber(changed)
  if before == 0 or at < before or at == before and id < ARGV[4] then found[#found + 1] = { id, at } end
end
local sets = { dead = 'x:', leased = 'l:', due = 'd:', ready = 'q:' }
for _, state in ipairs({ 'dead', 'leased', 'due', 'ready' }) do
  if ARGV[2] == '' or ARGV[2] == state then
    for _, source in ipairs(ARGV[1] ~= '' and { ARGV[1] } or call('ZRANGE', base .. 'names', '0', '-1')) do
      if looked >= 10000 then break end
      local ids = call('ZRANGE', base .. sets[state] .. source, '0', 9999 - looked, 'REV')
      for _, id in ipairs(ids) do consider(id) end
    end
  end
end
if ARGV[2] == '' or ARGV[2] == 'done' then
  for _, id in ipairs(call('LRANGE', base .. 'done', '-10000', '-1')) do consider(id) end
end
table.sort(found, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] > b[1] end)
local answer = {}
for i = 1, math.min(#found, limit) do
  local id = found[i][1]
  answer[i] = { id, call('GET', base .. 't:' .. id), call('LRANGE', base .. 'h:' .. id, '0', '-1') }
end
return answer
