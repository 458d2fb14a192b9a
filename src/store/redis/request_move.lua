-- request_move: ask for a hand-over of a job.
-- KEYS[1] state  hash  KEYS[2] lease  hash  KEYS[3] events channel
-- ARGV[1] job  ARGV[2] wanted node ('' for any other)  ARGV[3] user  ARGV[4] valid for, milliseconds
-- Returns 1.
-- Why: the holder is read here, in the same step, so the wish names the node that must let go. A job that rests leaves
-- the node of its newest run, and the wish stays valid until its next run is due.
local state, now = KEYS[1], store_now()
redis.call('HDEL', state, 'move_from', 'move_to')
local known = redis.call('HMGET', state, 'exit_node', 'next_at')
local from = redis.call('HGET', KEYS[2], 'node') or known[1]
if from then
  redis.call('HSET', state, 'move_from', from)
end
if ARGV[2] ~= '' then
  redis.call('HSET', state, 'move_to', ARGV[2])
end
local due = math.max(now, tonumber(known[2]) or 0)
redis.call('HSET', state, 'move_by', ARGV[3], 'move_until', integer(due + tonumber(ARGV[4])))
change(state, KEYS[3], ARGV[1], 'move_requested')
return 1
