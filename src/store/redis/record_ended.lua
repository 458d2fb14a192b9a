-- record_ended: a run's process tree is proved gone; write its end, release its lease, say what follows.
-- KEYS[1] token  KEYS[2] state  hash  KEYS[3] lease  hash  KEYS[4] runs  sorted set  KEYS[5] participants hash
-- KEYS[6] events channel
-- ARGV[1] token  ARGV[2] job  ARGV[3] owner  ARGV[4] run  ARGV[5] exit code ('' when none)  ARGV[6] signal
-- ('' when none)  ARGV[7] end  ARGV[8] processes killed  ARGV[9] then: nothing, repeat, done, retry, give_up
-- ARGV[10] crashes  ARGV[11] wait  milliseconds  ARGV[12] runs kept  ARGV[13] when it began ('' when no store has said it)
-- ARGV[14] how long ago that was  milliseconds, '' when that is not known
-- Returns 'ok', or 'stale' and the newest token.
-- Why: end and release are one step, or another node could start before the end is known. The same end again
-- (an answer was lost) is harmless, also when a newer holder came meanwhile; an end that a newer holder has
-- already closed as lost is stale. A run that is not known began when the caller says, or else with its lease.
local state, run = KEYS[2], ARGV[4]
local written
order_runs(KEYS[4])
for _, one in ipairs(redis.call('ZRANGE', KEYS[4], ARGV[1], ARGV[1], 'BYSCORE')) do
  if string.sub(one, 1, #run + 1) == run .. ' ' then
    written = one
  end
end
local same = written and string.find(written, '"end":"' .. ARGV[7] .. '","processes_killed":', 1, true)
if same then
  return { 'ok' }
end
local newest = newer_than(KEYS[1], ARGV[1])
if newest then
  return { 'stale', newest }
elseif written then
  return { 'ok' }
end
local now = store_now()
local known = redis.call('HMGET', state, 'run_id', 'run_node', 'run_started', 'holder')
local held = redis.call('HMGET', KEYS[3], 'owner', 'token', 'since')
local mine, began = known[1] == run, now
if mine then
  began = tonumber(known[3])
elseif ARGV[14] ~= '' then
  began = recall(now, ARGV[13], ARGV[14])
elseif held[2] == ARGV[1] then
  began = tonumber(held[3])
end
close_run(state, KEYS[4], { id = run, job = ARGV[2], node = mine and known[2] or known[4] or 'unknown',
  token = ARGV[1], started = began, ended = now, code = ARGV[5], signal = ARGV[6],
  reason = ARGV[7], killed = ARGV[8], keep = tonumber(ARGV[12]) })
-- One of an older token is what a late renewal put into a store that had forgotten this one.
local older = held[2] and tonumber(held[2]) < tonumber(ARGV[1])
if older or (held[1] == ARGV[3] and held[2] == ARGV[1]) then
  redis.call('DEL', KEYS[3])
end
redis.call('HSET', state, 'released', ARGV[1], 'crashes', ARGV[10])
redis.call('HDEL', state, 'next_what', 'next_at')
local what = ({ ['repeat'] = 'repeat', retry = 'retry' })[ARGV[9]]
if what then
  redis.call('HSET', state, 'next_what', what, 'next_at', integer(now + tonumber(ARGV[11])))
elseif ARGV[9] == 'give_up' then
  redis.call('HSET', state, 'given_up', '1')
elseif ARGV[9] == 'done' then
  redis.call('DEL', KEYS[5])
end
change(state, KEYS[6], ARGV[2], 'run_ended')
change(state, KEYS[6], ARGV[2], 'lease_released')
if ARGV[9] == 'done' then
  change(state, KEYS[6], ARGV[2], 'participation_changed')
end
return { 'ok' }
