-- read_dead: dead tasks, newest first.
-- KEYS as in open_dispatch.
-- ARGV[1] source, or '' for all  ARGV[2] skip  ARGV[3] limit
-- Returns of each: id, record, and its history as a list.
-- Why: the dead of each source are in order of time; of several the newest are merged.
local skip, limit = tonumber(ARGV[2]), tonumber(ARGV[3])
local found = {}
for _, source in ipairs(ARGV[1] ~= '' and { ARGV[1] } or call('ZRANGE', base .. 'names', 0, -1)) do
  local dead = call('ZRANGE', base .. 'x:' .. source, 0, skip + limit - 1, 'REV', 'WITHSCORES')
  for i = 1, #dead, 2 do found[#found + 1] = { dead[i], tonumber(dead[i + 1]) } end
end
table.sort(found, function(a, b) return a[2] > b[2] or (a[2] == b[2] and a[1] > b[1]) end)
local answer = {}
for i = skip + 1, math.min(#found, skip + limit) do
  local id = found[i][1]
  answer[#answer + 1] = { id, call('GET', base .. 't:' .. id), call('LRANGE', base .. 'h:' .. id, 0, -1) }
end
return answer
