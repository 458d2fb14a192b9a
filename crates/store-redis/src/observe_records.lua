-- observe_records: version and remaining lease of up to a hundred records.
-- KEYS[1] epoch (trust_store), then for each: record, lease
-- ARGV[1..5] trust_store
-- Returns guard, then for each: the beginning of the record, which holds the version; milliseconds left of the lease (-1: it has no
-- end, -2: it is free).
-- Why: cheap enough for every second, and the call by which every node notices a store that forgot.
local answers = { guard }
for i = 2, #KEYS, 2 do
  answers[#answers + 1] = redis.call('GETRANGE', KEYS[i], '0', '20')
  answers[#answers + 1] = redis.call('PTTL', KEYS[i + 1])
end
return answers
