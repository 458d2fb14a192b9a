-- read_leases: up to a hundred leases, whole.
-- KEYS leases  text; each expires after its ttl
-- ARGV none.
-- Returns for each: its text (false when it is over), milliseconds left.
-- Why: one script, so that a lease and what is left of it are of one instant.
local answers = {}
for i, lease in ipairs(KEYS) do
  answers[i] = { redis.call('GET', lease), redis.call('PTTL', lease) }
end
return answers
