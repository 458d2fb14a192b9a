-- record_started: a run began under a token.
-- KEYS[1] token  KEYS[2] state  hash  KEYS[3] runs  sorted set  KEYS[4] events channel
-- ARGV[1] token  ARGV[2] job  ARGV[3] run  ARGV[4] node  ARGV[5] pid  ARGV[6] when it began ('' when no store has said it)
-- ARGV[7] how long ago that was  milliseconds  ARGV[8] runs kept
-- Returns 'ok' and when it began, or 'stale' and the newest token.
-- Why: repeated, or late after the end of the same token, it changes nothing: no run rises from the dead. A store that
-- forgot the run shows it as before. One that still shows an older run, whose end it forgot, closes that as lost. A drill
-- ends with the first run after it; one whose run did not crash measured nothing and is forgotten.
local newest = newer_than(KEYS[1], ARGV[1])
if newest then
  return { 'stale', newest }
end
local known = redis.call('HMGET', KEYS[2], 'run_id', 'released', 'run_token', 'run_node', 'run_started')
if known[1] == ARGV[3] then
  return { 'ok', known[5] }
end
local now = store_now()
local began = integer(recall(now, ARGV[6], ARGV[7]))
if known[2] == ARGV[1] then
  return { 'ok', began }
end
if known[1] then
  close_run(KEYS[2], KEYS[3], { id = known[1], job = ARGV[2], node = known[4], token = known[3],
    started = tonumber(known[5]), ended = now, reason = 'lost', killed = '0', keep = tonumber(ARGV[8]) })
  change(KEYS[2], KEYS[4], ARGV[2], 'lease_lost')
end
redis.call('HDEL', KEYS[2], 'run_kill_at', 'run_progress', 'run_last_output')
redis.call('HSET', KEYS[2], 'run_id', ARGV[3], 'run_token', ARGV[1], 'run_node', ARGV[4], 'run_pid', ARGV[5],
  'run_started', began, 'run_phase', 'running', 'holder', ARGV[4])
local drill = redis.call('HMGET', KEYS[2], 'drill_token', 'drill_started', 'exit_end')
if drill[1] and not drill[2] and tonumber(drill[1]) < tonumber(ARGV[1]) then
  if drill[3] == 'lost' then
    redis.call('HSET', KEYS[2], 'drill_to', ARGV[4], 'drill_started', began)
  else
    redis.call('HDEL', KEYS[2], 'drill_token', 'drill_by', 'drill_at')
  end
end
change(KEYS[2], KEYS[4], ARGV[2], 'run_started')
return { 'ok', began }
