-- record_started: a run began under a token.
-- KEYS[1] token  KEYS[2] state  hash  KEYS[3] events channel
-- ARGV[1] token  ARGV[2] job  ARGV[3] run  ARGV[4] node  ARGV[5] pid
-- Returns 'ok', or 'stale' and the newest token.
-- Why: repeated, or late after the end of the same token, it changes nothing: no run rises from the dead. A drill
-- ends with the first run after it; one whose run did not crash measured nothing and is forgotten.
local newest = newer_than(KEYS[1], ARGV[1])
if newest then
  return { 'stale', newest }
end
local known = redis.call('HMGET', KEYS[2], 'run_id', 'released')
if known[1] == ARGV[3] or known[2] == ARGV[1] then
  return { 'ok' }
end
local now = integer(store_now())
redis.call('HDEL', KEYS[2], 'run_kill_at', 'run_progress', 'run_last_output')
redis.call('HSET', KEYS[2], 'run_id', ARGV[3], 'run_token', ARGV[1], 'run_node', ARGV[4], 'run_pid', ARGV[5],
  'run_started', now, 'run_phase', 'running', 'holder', ARGV[4])
local drill = redis.call('HMGET', KEYS[2], 'drill_token', 'drill_started', 'exit_end')
if drill[1] and not drill[2] and tonumber(drill[1]) < tonumber(ARGV[1]) then
  if drill[3] == 'lost' then
    redis.call('HSET', KEYS[2], 'drill_to', ARGV[4], 'drill_started', now)
  else
    redis.call('HDEL', KEYS[2], 'drill_token', 'drill_by', 'drill_at')
  end
end
change(KEYS[2], KEYS[3], ARGV[2], 'run_started')
return { 'ok' }
