-- add_token: store an API token.
-- KEYS[1] tokens  hash of secret -> 'CREATED EXPIRES JSON', milliseconds; expires 0 when never
-- ARGV[1] hash of the secret  ARGV[2] JSON with id, user and name  ARGV[3] lifetime  milliseconds ('' for ever)
-- Returns 1.
-- Why: adding is rare, so it also sweeps what has expired.
local now, all = store_now(), redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local expires = tonumber(string.match(all[i + 1], '^%d+ (%d+) ')) or 0
  if expires > 0 and now >= expires then
    redis.call('HDEL', KEYS[1], all[i])
  end
end
local expires = ARGV[3] == '' and 0 or now + tonumber(ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], integer(now) .. ' ' .. integer(expires) .. ' ' .. ARGV[2])
return 1
