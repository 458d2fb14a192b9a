-- open_session: a browser signed in.
-- KEYS[1] sessions  hash of secret -> 'CREATED EXPIRES USED JSON', milliseconds
-- ARGV[1] hash of the secret  ARGV[2] JSON with user and csrf  ARGV[3] lifetime  milliseconds
-- Returns 1.
-- Why: signing in is rare and slow, so it also sweeps what has expired.
local now, all = store_now(), redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if now >= (tonumber(string.match(all[i + 1], '^%d+ (%d+) ')) or 0) then
    redis.call('HDEL', KEYS[1], all[i])
  end
end
redis.call('HSET', KEYS[1], ARGV[1],
  integer(now) .. ' ' .. integer(now + tonumber(ARGV[3])) .. ' ' .. integer(now) .. ' ' .. ARGV[2])
return 1
