-- beat_node: a node reports that it lives.
-- KEYS[1] nodes  hash node -> 'MILLISECONDS JSON'  KEYS[2] drains  set  KEYS[3] nodes channel
-- KEYS[4] definitions  hash node -> 'DIGEST JSON'
-- ARGV[1] node  ARGV[2] boot  ARGV[3] report as JSON  ARGV[4] alive for, milliseconds
-- ARGV[5] forgotten after, milliseconds  ARGV[6] digest of what it defines
-- Returns {'duplicate', 'draining' or 'welcome', 1 when what it defines is known under this digest else 0}.
-- Why: two processes of one name would fight over the same jobs; the one that came later is told. Only what
-- somebody would want to see is published, never a mere beat.
local now = store_now()
local at, old = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) (.*)$')
local age = at and math.max(0, now - tonumber(at))
if old and age < tonumber(ARGV[4]) and cjson.decode(old).boot ~= ARGV[2] then
  return {'duplicate', 0}
end
redis.call('HSET', KEYS[1], ARGV[1], integer(now) .. ' ' .. ARGV[3])
if old ~= ARGV[3] or age >= tonumber(ARGV[4]) then
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    if now - (tonumber(string.match(all[i + 1], '^(%d+) ')) or 0) > tonumber(ARGV[5]) then
      redis.call('HDEL', KEYS[1], all[i])
      redis.call('HDEL', KEYS[4], all[i])
    end
  end
  redis.call('PUBLISH', KEYS[3], '{"event":"nodes"}')
end
local told = redis.call('HGET', KEYS[4], ARGV[1])
return {
  redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 and 'draining' or 'welcome',
  told and string.sub(told, 1, #ARGV[6] + 1) == ARGV[6] .. ' ' and 1 or 0,
}
