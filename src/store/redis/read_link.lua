-- read_link: look at a one-time link, or use it up.
-- KEYS[1] links  hash of secret -> 'EXPIRES JSON', milliseconds
-- ARGV[1] hash of the secret  ARGV[2] '1' take, '0' look
-- Returns its JSON, or false.
-- Why: read and used up in one step: of two takers one gets it.
local expires, rest = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^(%d+) (.*)$')
if not expires then
  return false
end
local living = store_now() < tonumber(expires)
if ARGV[2] == '1' or not living then
  redis.call('HDEL', KEYS[1], ARGV[1])
end
return living and rest
