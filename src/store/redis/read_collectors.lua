-- read_collectors: who collects, and what they hold.
-- KEYS as in open_dispatch.
-- ARGV[1] most leases that are looked at in a source
-- Returns now, collectors with the instant when each was last seen, then id and record of every leased task.
-- Why: collectors need no record of what they hold: the leases say it. One unseen for a day is forgotten.
local seen = call('HGETALL', base .. 'collectors')
local living = {}
for i = 1, #seen, 2 do
  if tonumber(seen[i + 1]) < now - 86400000000 then
    call('HDEL', base .. 'collectors', seen[i])
  else
    living[#living + 1], living[#living + 2] = seen[i], seen[i + 1]
  end
end
local answer = { now_text, living }
for _, source in ipairs(call('ZRANGE', base .. 'names', 0, -1)) do
  for _, id in ipairs(call('ZRANGE', base .. 'l:' .. source, 0, tonumber(ARGV[1]) - 1)) do
    answer[#answer + 1] = id
    answer[#answer + 1] = call('GET', base .. 't:' .. id) or ''
  end
end
return answer
