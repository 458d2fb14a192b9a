-- record_stopping: the present run was told to stop and is killed after a grace.
-- KEYS[1] token  KEYS[2] state  hash  KEYS[3] events channel
-- ARGV[1] token  ARGV[2] job  ARGV[3] grace  milliseconds
-- Returns 'ok', or 'stale' and the newest token.
-- Why: "stopping, killed in 2 s" is shown from the store's clock, whichever node one looks at.
local newest = newer_than(KEYS[1], ARGV[1])
if newest then
  return { 'stale', newest }
end
if redis.call('HGET', KEYS[2], 'run_token') == ARGV[1] then
  redis.call('HSET', KEYS[2], 'run_phase', 'stopping', 'run_kill_at', integer(store_now() + tonumber(ARGV[3])))
  change(KEYS[2], KEYS[3], ARGV[2], 'run_progressed')
end
return { 'ok' }
