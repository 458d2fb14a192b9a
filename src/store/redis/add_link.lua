-- add_link: store a one-time link.
-- KEYS[1] links  hash of secret -> 'EXPIRES JSON', milliseconds
-- ARGV[1] hash of the secret  ARGV[2] JSON with user  ARGV[3] lifetime  milliseconds
-- Returns 1.
-- Why: adding is rare, so it also sweeps what has expired.
local now, all = store_now(), redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if now >= (tonumber(string.match(all[i + 1], '^(%d+) ')) or 0) then
    redis.call('HDEL', KEYS[1], all[i])
  end
end
redis.call('HSET', KEYS[1], ARGV[1], integer(now + tonumber(ARGV[3])) .. ' ' .. ARGV[2])
return 1
