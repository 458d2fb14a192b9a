-- switch_participation: one user switches one job on or off.
-- KEYS[1] state  hash  KEYS[2] participants  hash user -> since, milliseconds  KEYS[3] events channel
-- ARGV[1] job  ARGV[2] user  ARGV[3] '1' on, '0' off  ARGV[4] reason, absent when none
-- Returns 1 when the participation changed, else 0.
-- Why: switching on again is how a person says "try now": it also clears what keeps the job waiting.
local state, on, now = KEYS[1], ARGV[3] == '1', integer(store_now())
local changed, cleared
if on then
  changed = redis.call('HSETNX', KEYS[2], ARGV[2], now)
  cleared = redis.call('HDEL', state, 'given_up', 'crashes', 'next_what', 'next_at')
else
  changed = redis.call('HDEL', KEYS[2], ARGV[2])
  cleared = 0
end
if changed + cleared > 0 then
  redis.call('HSET', state, 'switch_user', ARGV[2], 'switch_on', ARGV[3], 'switch_at', now)
  if ARGV[4] then
    redis.call('HSET', state, 'switch_reason', ARGV[4])
  else
    redis.call('HDEL', state, 'switch_reason')
  end
  change(state, KEYS[3], ARGV[1], 'participation_changed')
end
return changed
