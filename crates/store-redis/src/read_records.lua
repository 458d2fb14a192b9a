-- read_records: up to a hundred records, each with the lease beside it, at one instant.
-- KEYS[1] epoch (trust_store), then for each: record, lease
-- ARGV[1..5] trust_store
-- Returns guard, then for each: record, lease (false when there is none), milliseconds left of the lease.
-- Why: one script, so that no answer mixes two instants.
local answers = { guard }
for i = 2, #KEYS, 2 do
  answers[#answers + 1] = redis.call('GET', KEYS[i])
  answers[#answers + 1] = redis.call('GET', KEYS[i + 1])
  answers[#answers + 1] = redis.call('PTTL', KEYS[i + 1])
end
return answers
