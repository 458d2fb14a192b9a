-- read_sources: sources with their rules, counts, and why they are not served now.
-- KEYS as in open_dispatch.
-- ARGV[1] source, or '' for all by name
-- Returns now, then of each: name, its hash as a list, ready, due, in flight, dead, reason ('': open), until (0: unknown).
-- Why: one step, so that the counts of a source add up.
local names = ARGV[1] ~= '' and { ARGV[1] } or call('ZRANGE', base .. 'names', 0, -1)
local answer = { now_text }
for _, source in ipairs(names) do
  local rules = load(source)
  if rules then
    local counts = {}
    for i, set in ipairs({ 'q:', 'd:', 'l:', 'x:' }) do counts[i] = call('ZCARD', base .. set .. source) end
    local _, reason, till = room(source, rules)
    if counts[1] == 0 then
      reason = 'empty'
      till = tonumber(call('ZRANGE', base .. 'd:' .. source, 0, 0, 'WITHSCORES')[2] or nil)
    end
    answer[#answer + 1] = { source, call('HGETALL', base .. 's:' .. source), counts[1], counts[2], counts[3],
      counts[4], reason or '', till and integer(till) or '0' }
  end
end
return answer
