-- read_leases: up to a hundred leases, whole.
-- KEYS leases  hash owner, node, token, since, ttl; expires after ttl
-- ARGV none.
-- Returns for each: its fields with their values (none when it is over), milliseconds left.
-- Why: one script, so that a lease and what is left of it are of one instant.
local answers = {}
for i, lease in ipairs(KEYS) do
  answers[i] = { redis.call('HGETALL', lease), redis.call('PTTL', lease) }
end
return answers
