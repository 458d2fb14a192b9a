-- drain_node: empty a node and keep it empty, or allow it again.
-- KEYS[1] nodes  hash  KEYS[2] drains  set  KEYS[3] nodes channel
-- ARGV[1] node  ARGV[2] '1' drain, '0' allow
-- Returns 1, or 0 when there is no such node.
-- Why: the mark outlives the node's process, so a restart does not undo what an operator wanted.
local marked = redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 and not marked then
  return 0
end
redis.call(ARGV[2] == '1' and 'SADD' or 'SREM', KEYS[2], ARGV[1])
redis.call('PUBLISH', KEYS[3], '{"event":"nodes"}')
return 1
