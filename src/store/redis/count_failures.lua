-- count_failures: count failed logins within a sliding window.
-- KEYS[1] failures of one key  sorted set by milliseconds; expires after the window
-- ARGV[1] step: look, add or clear  ARGV[2] window  milliseconds  ARGV[3] unique member for an added one
-- Returns the count.
-- Why: at most 1,000 are kept: more do not change any answer, and an attacker must not fill the store.
if ARGV[1] == 'clear' then
  redis.call('DEL', KEYS[1])
  return 0
end
local now, window = store_now(), tonumber(ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', integer(now - window))
if ARGV[1] == 'add' then
  redis.call('ZADD', KEYS[1], integer(now), ARGV[3])
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1001)
  redis.call('PEXPIRE', KEYS[1], window)
end
return redis.call('ZCARD', KEYS[1])
