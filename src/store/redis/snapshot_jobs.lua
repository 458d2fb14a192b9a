-- snapshot_jobs: everything known of up to a hundred jobs at one instant.
-- KEYS[1] epoch (guard_store), then for each: state, lease, participants, token
-- ARGV[1..5] guard_store
-- Returns guard, then for each an array: state (field, value, ...), lease (field, value, ...), milliseconds
-- left of it, participants (user, since, ...), newest token as text ('0' when none).
-- Why: one script, so that no record mixes two instants.
local answers = { guard }
for i = 2, #KEYS, 4 do
  answers[#answers + 1] = {
    redis.call('HGETALL', KEYS[i]),
    redis.call('HGETALL', KEYS[i + 1]),
    redis.call('PTTL', KEYS[i + 1]),
    redis.call('HGETALL', KEYS[i + 2]),
    redis.call('GET', KEYS[i + 3]) or '0',
  }
end
return answers
