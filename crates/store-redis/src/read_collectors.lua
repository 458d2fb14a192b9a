-- read_collectors: who collects, and what they hold.
-- KEYS as in open_dispatch.
-- ARGV[1] most leases that are looked at in a source
-- Returns now, collectors with the instant when each was last seen, then id and record of every leased task.
-- Why: collectors need no record of what they hold: the leases say it. One unseen for a day is forgotten. Of more than a thousand
-- those that called last are named.
local seen = call('HGETALL', base .. 'collectors')
local known, living = {}, {}
for i = 1, #seen, 2 do
  if tonumber(seen[i + 1]) < now - 86400000000 then
    call('HDEL', base .. 'collectors', seen[i])
  else
    known[#known + 1] = { seen[i], seen[i + 1] }
  end
end
if #known > 1000 then table.sort(known, function(a, b) return tonumber(a[2]) > tonumber(b[2]) end) end
for i = 1, math.min(#known, 1000) do living[2 * i - 1], living[2 * i] = known[i][1], known[i][2] end
local answer = { now_text, living }
for _, source in ipairs(call('ZRANGE', base .. 'names', 0, -1)) do
  for _, id in ipairs(call('ZRANGE', base .. 'l:' .. source, 0, tonumber(ARGV[1]) - 1)) do
    answer[#answer + 1] = id
    answer[#answer + 1] = call('GET', base .. 't:' .. id) or ''
  end
end
return answer
