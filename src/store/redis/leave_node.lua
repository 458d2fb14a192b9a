-- leave_node: a node says good-bye.
-- KEYS[1] nodes  hash node -> 'MILLISECONDS JSON'  KEYS[2] nodes channel
-- KEYS[3] definitions  hash by node
-- ARGV[1] node  ARGV[2] boot
-- Returns 1 when its report was removed, else 0.
-- Why: only the own report; a process of the same name that came since stays.
local old = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^%d+ (.*)$')
if not old or cjson.decode(old).boot ~= ARGV[2] then
  return 0
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('PUBLISH', KEYS[2], '{"event":"nodes"}')
return 1
