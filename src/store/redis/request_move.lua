-- request_move: ask for a hand-over of a job.
-- KEYS[1] state  hash  KEYS[2] lease  hash  KEYS[3] events channel
-- ARGV[1] job  ARGV[2] wanted node ('' for any other)  ARGV[3] user  ARGV[4] valid for, milliseconds
-- Returns 1.
-- Why: the holder is read here, in the same step, so the wish names the node that must let go.
redis.call('HDEL', KEYS[1], 'move_from', 'move_to')
local from = redis.call('HGET', KEYS[2], 'node')
if from then
  redis.call('HSET', KEYS[1], 'move_from', from)
end
if ARGV[2] ~= '' then
  redis.call('HSET', KEYS[1], 'move_to', ARGV[2])
end
redis.call('HSET', KEYS[1], 'move_by', ARGV[3], 'move_until', integer(store_now() + tonumber(ARGV[4])))
change(KEYS[1], KEYS[3], ARGV[1], 'move_requested')
return 1
