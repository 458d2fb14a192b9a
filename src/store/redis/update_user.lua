-- update_user: replace an account's role, password and preferences.
-- KEYS[1] users  hash name -> JSON  KEYS[2] nodes channel
-- ARGV[1] name  ARGV[2] the inside of a JSON object
-- Returns 1, or 0 when there is no such account.
-- Why: the day it was made is kept, whatever the caller believes.
local old = redis.call('HGET', KEYS[1], ARGV[1])
if not old then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], '{"created":' .. integer(cjson.decode(old).created) .. ',' .. ARGV[2] .. '}')
redis.call('PUBLISH', KEYS[2], '{"event":"accounts"}')
return 1
