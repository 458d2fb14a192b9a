-- read_rotations: rotations with their rules, how far they have come, who waits, and what ended.
-- KEYS as in open_rotation.
-- ARGV[1] rotation, or '' for all by name  ARGV[2] how many past turns  ARGV[3] how many waiters
-- Returns now, then of each: name, rules, its hash as a list, type and stamps of each type that had turns under a quota, type
-- and how many wait of each type, type, waiter and what is known of it of the first who wait, past turns.
-- Why: one step, so that what is shown fits together.
local names = ARGV[1] ~= '' and { ARGV[1] } or call('ZRANGE', base .. 'names', '0', '-1')
local answer = { text(now) }
for _, name in ipairs(names) do
  local r = open(name)
  if r then
    local starts, counts, waiters = {}, {}, {}
    for _, kind in ipairs(r.types) do
      starts[#starts + 1] = kind
      starts[#starts + 1] = call('LRANGE', base .. 's:' .. name .. ':' .. kind, '0', '-1')
      counts[#counts + 1] = kind
      counts[#counts + 1] = count(r, kind)
      for _, life in ipairs(lives(r)) do
        local first = call('ZRANGE', queue(r, kind, life), '0', tonumber(ARGV[3]) - 1, 'WITHSCORES')
        for i = 1, #first, 2 do waiters[#waiters + 1] = { tonumber(first[i + 1]), kind, first[i] } end
      end
    end
    table.sort(waiters, function(a, b) return a[1] < b[1] end)
    local named = {}
    for i = 1, math.min(#waiters, tonumber(ARGV[3])) do
      named[#named + 1] = waiters[i][2]
      named[#named + 1] = waiters[i][3]
      named[#named + 1] = call('HGET', known(r, life_of(waiters[i][3])), waiters[i][3]) or ''
    end
    local past = ARGV[2] ~= '0' and call('LRANGE', base .. 'past:' .. name, '0', tonumber(ARGV[2]) - 1) or {}
    answer[#answer + 1] = { name, call('HGET', base .. 'rules', name), call('HGETALL', base .. 'r:' .. name), starts, counts,
      named, past }
  end
end
return answer
