-- record_output: append lines of output and set the progress of a run, in one step.
-- KEYS[1] token  KEYS[2] state  hash  KEYS[3] log  list of JSON lines, oldest first  KEYS[4] events channel
-- ARGV[1] token  ARGV[2] job  ARGV[3] run  ARGV[4] progress as JSON ('' when unchanged)
-- ARGV[5] text of the newest line  ARGV[6] lines kept  ARGV[7..] lines: the inside of a JSON object
-- Returns 'ok', or 'stale' and the newest token.
-- Why: the numbers of the kept lines are contiguous and end at log_seq, so the list needs no index.
local newest = newer_than(KEYS[1], ARGV[1])
if newest then
  return { 'stale', newest }
end
local state, lines, now = KEYS[2], #ARGV - 6, integer(store_now())
local present = redis.call('HGET', state, 'run_id') == ARGV[3]
local progress = present and ARGV[4] ~= ''
if lines > 0 then
  local seq = redis.call('HINCRBY', state, 'log_seq', lines) - lines
  for i = 1, lines do
    redis.call('RPUSH', KEYS[3], '{"seq":' .. integer(seq + i) .. ',"at":' .. now .. ',' .. ARGV[6 + i] .. '}')
  end
  redis.call('LTRIM', KEYS[3], -tonumber(ARGV[6]), -1)
  redis.call('HSET', state, 'last_line', ARGV[5])
  if present then
    redis.call('HSET', state, 'run_last_output', now)
  end
end
if progress then
  redis.call('HSET', state, 'run_progress', ARGV[4])
end
if lines > 0 or progress then
  change(state, KEYS[4], ARGV[2], 'run_progressed')
end
return { 'ok' }
