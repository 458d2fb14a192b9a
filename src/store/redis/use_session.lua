-- use_session: read a session and note its use.
-- KEYS[1] sessions  hash of secret -> 'CREATED EXPIRES USED JSON', milliseconds
-- ARGV[1] hash of the secret  ARGV[2] idle  milliseconds
-- Returns created, expires, JSON; nothing when there is none, it expired or was idle too long.
-- Why: the use is written only now and then (a twentieth of idle): reading a page is not a write.
local created, expires, used, rest =
  string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) (%d+) (%d+) (.*)$')
if not created then
  return {}
end
local now, idle = store_now(), tonumber(ARGV[2])
if now >= tonumber(expires) or now - tonumber(used) >= idle then
  redis.call('HDEL', KEYS[1], ARGV[1])
  return {}
end
if now - tonumber(used) >= idle / 20 then
  redis.call('HSET', KEYS[1], ARGV[1], created .. ' ' .. expires .. ' ' .. integer(now) .. ' ' .. rest)
end
return { created, expires, rest }
