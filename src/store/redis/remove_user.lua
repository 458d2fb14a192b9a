-- remove_user: remove an account with its sessions and tokens.
-- KEYS[1] users  hash name -> JSON  KEYS[2] sessions  hash  KEYS[3] tokens  hash (values end in JSON with user)
-- KEYS[4] nodes channel
-- ARGV[1] name
-- Returns 1, or 0 when there is no such account.
-- Why: in one step, or a session would outlive its account.
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return 0
end
for k = 2, 3 do
  local all = redis.call('HGETALL', KEYS[k])
  for i = 1, #all, 2 do
    if cjson.decode(string.match(all[i + 1], '({.*})$')).user == ARGV[1] then
      redis.call('HDEL', KEYS[k], all[i])
    end
  end
end
redis.call('PUBLISH', KEYS[4], '{"event":"accounts"}')
return 1
