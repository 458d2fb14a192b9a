-- request_drill: order the holder of a job to crash.
-- KEYS[1] state  hash  KEYS[2] lease  hash  KEYS[3] events channel
-- ARGV[1] job  ARGV[2] token of the lease that is meant  ARGV[3] user
-- Returns when it was ordered (milliseconds, as text), or false when that lease is not out any more.
-- Why: the token is compared in the same step, so the order can never hit a later holder. Repeated, also after the
-- holder is dead, it changes nothing: an answer lost in the network is harmless.
local known = redis.call('HMGET', KEYS[1], 'drill_token', 'drill_at')
if known[1] == ARGV[2] then
  return known[2]
end
if redis.call('HGET', KEYS[2], 'token') ~= ARGV[2] then
  return false
end
local now = integer(store_now())
redis.call('HDEL', KEYS[1], 'drill_to', 'drill_started')
redis.call('HSET', KEYS[1], 'drill_token', ARGV[2], 'drill_by', ARGV[3], 'drill_at', now)
change(KEYS[1], KEYS[3], ARGV[1], 'drill_requested')
return now
