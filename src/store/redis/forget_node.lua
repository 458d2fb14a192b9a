-- forget_node: a node that is silent is taken off the list.
-- KEYS[1] nodes  hash node -> 'MILLISECONDS JSON'  KEYS[2] drains  set  KEYS[3] nodes channel
-- KEYS[4] definitions  hash by node
-- ARGV[1] node  ARGV[2] alive for, milliseconds
-- Returns 'forgotten', 'alive' when it reported lately (nothing is changed), or 'unknown'.
-- Why: one step, so that a node which comes back at this moment is not taken for a dead one. The drain mark goes too: a
-- machine that was scrapped must not leave one behind.
local at = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) ')
if at and math.max(0, store_now() - tonumber(at)) < tonumber(ARGV[2]) then
  return 'alive'
end
redis.call('HDEL', KEYS[4], ARGV[1])
if redis.call('HDEL', KEYS[1], ARGV[1]) + redis.call('SREM', KEYS[2], ARGV[1]) == 0 then
  return 'unknown'
end
redis.call('PUBLISH', KEYS[3], '{"event":"nodes"}')
return 'forgotten'
