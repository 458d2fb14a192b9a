-- close_sessions: end one session, or all of a user.
-- KEYS[1] sessions  hash of secret -> 'CREATED EXPIRES USED JSON'  KEYS[2] nodes channel
-- ARGV[1] user  ARGV[2] hash of the secret ('' for all)
-- Returns how many ended.
-- Why: compared with the user, so nobody ends another's session by knowing a hash.
local ended, all = 0, nil
if ARGV[2] == '' then
  all = redis.call('HGETALL', KEYS[1])
else
  all = { ARGV[2], redis.call('HGET', KEYS[1], ARGV[2]) or '' }
end
for i = 1, #all, 2 do
  local rest = string.match(all[i + 1], '({.*})$')
  if rest and cjson.decode(rest).user == ARGV[1] then
    ended = ended + redis.call('HDEL', KEYS[1], all[i])
  end
end
if ended > 0 then
  redis.call('PUBLISH', KEYS[2], '{"event":"accounts"}')
end
return ended
