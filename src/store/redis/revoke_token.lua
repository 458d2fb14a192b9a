-- revoke_token: remove an API token by its public id.
-- KEYS[1] tokens  hash of secret -> 'CREATED EXPIRES JSON'  KEYS[2] nodes channel
-- ARGV[1] id
-- Returns how many were removed.
-- Why: people know the id, never the hash; tokens are few.
local removed, all = 0, redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local rest = string.match(all[i + 1], '({.*})$')
  if rest and cjson.decode(rest).id == ARGV[1] then
    removed = removed + redis.call('HDEL', KEYS[1], all[i])
  end
end
if removed > 0 then
  redis.call('PUBLISH', KEYS[2], '{"event":"accounts"}')
end
return removed
