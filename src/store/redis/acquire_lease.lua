-- acquire_lease: take the free lease if the condition holds, and mint the next token.
-- KEYS[1] epoch (guard_store)  KEYS[2] lease  hash owner, node, token, since, ttl; expires after ttl
-- KEYS[3] state hash  KEYS[4] participants hash  KEYS[5] token  integer; never expires, never deleted
-- KEYS[6] runs  sorted set  KEYS[7] events channel
-- ARGV[1..5] guard_store  ARGV[6] job  ARGV[7] owner  ARGV[8] node  ARGV[9] ttl  milliseconds, > 0
-- ARGV[10] condition  'wanted', 'despite_move' or 'none'  ARGV[11] seen  highest token the caller knows  ARGV[12] runs kept
-- Returns guard, then 'granted', token, since | 'busy', node, left | 'not_wanted' | 'not_yet', wait |
-- 'reserved', wait | 'quarantined', wait (all in milliseconds).
-- Why: an owner that asks again gets the same token, so an answer lost in the network is harmless. The token
-- has a key of its own: minted after expiry or release it must exceed every earlier one, and its time base
-- keeps it growing when the store forgot. A run of an earlier token is closed as lost before the grant.
local lease, state = KEYS[2], KEYS[3]
local job, owner, node, ttl = ARGV[6], ARGV[7], ARGV[8], tonumber(ARGV[9])
local held = redis.call('HMGET', lease, 'owner', 'node', 'token', 'since', 'ttl')
if held[1] == owner then
  redis.call('PEXPIRE', lease, ttl)
  redis.call('HSET', lease, 'ttl', ttl)
  return { guard, 'granted', held[3], held[4] }
elseif held[1] then
  -- After the clock was set back a lease would outlive its ttl by as much.
  local left, full = redis.call('PTTL', lease), tonumber(held[5])
  if left < 0 or left > full then
    redis.call('PEXPIRE', lease, full)
    left = full
  end
  return { guard, 'busy', held[2], left }
end
local job_state = redis.call('HMGET', state, 'hold_by', 'given_up', 'next_at', 'move_until', 'move_to',
  'move_from', 'run_id', 'run_token', 'run_node', 'run_started')
local move_until, move_to, move_from = tonumber(job_state[4]) or 0, job_state[5], job_state[6]
if ARGV[10] ~= 'none' then
  if redis.call('EXISTS', KEYS[4]) == 0 or job_state[1] or job_state[2] then
    return { guard, 'not_wanted' }
  end
  local due = tonumber(job_state[3]) or 0
  if due > now then
    return { guard, 'not_yet', due - now }
  end
  if move_until > now and ARGV[10] == 'wanted' then
    local elsewhere = move_to and move_to ~= node
    local back = not move_to and move_from == node
    if elsewhere or back then
      return { guard, 'reserved', move_until - now }
    end
  end
end
if quarantine > 0 then
  return { guard, 'quarantined', quarantine }
end
local previous = tonumber(redis.call('GET', KEYS[5])) or 0
local token = integer(math.max(previous + 1, now * 1024, tonumber(ARGV[11]) + 1))
redis.call('SET', KEYS[5], token)
redis.call('HSET', lease, 'owner', owner, 'node', node, 'token', token, 'since', integer(now), 'ttl', ttl)
redis.call('PEXPIRE', lease, ttl)
if job_state[7] then
  close_run(state, KEYS[6], { id = job_state[7], job = job, node = job_state[9], token = job_state[8],
    started = tonumber(job_state[10]), ended = now, reason = 'lost', killed = '0', keep = tonumber(ARGV[12]) })
  change(state, KEYS[7], job, 'lease_lost')
end
redis.call('HSET', state, 'holder', node)
redis.call('HDEL', state, 'next_what', 'next_at', 'move_from', 'move_to', 'move_by', 'move_until')
change(state, KEYS[7], job, 'lease_acquired')
return { guard, 'granted', token, integer(now) }
